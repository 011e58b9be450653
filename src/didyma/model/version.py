"""Which model a file holds: a hash of its content, when it was made, of what data, after which."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Self

from didyma.errors import DataError
from didyma.model.fields import convert

DIGITS = 12  # of the hash
EPOCH = "SOURCE_DATE_EPOCH"  # by which builds are reproducible


@dataclass(frozen=True)
class ModelVersion:
    """The version of a model.

    Attributes
    ----------
    id : str
        The first twelve digits of the SHA-256 of record and arrays: equal training gives equal ids,
        whenever it was done.
    created : str or None
        When the file was written, in UTC; the time of ``SOURCE_DATE_EPOCH`` if the environment has
        it, so that files can be equal to the byte. None in files of before 0.3.
    data : str or None
        Fingerprint of the training data, of models that know it (`TrainingData`).
    parent : str or None
        The id of the model that this one was to replace.

    >>> print(ModelVersion("0123456789ab", "2026-01-02T03:04:05+00:00", parent="ba9876543210"))
    0123456789ab of 2026-01-02, after ba9876543210
    """

    id: str
    created: str | None = None
    data: str | None = None
    parent: str | None = None

    def __str__(self) -> str:
        created = "" if self.created is None else f" of {self.created[:10]}"
        return f"{self.id}{created}" + ("" if self.parent is None else f", after {self.parent}")

    def to_dict(self) -> dict[str, Any]:
        """All of it, ready for JSON."""
        return asdict(self)

    @classmethod
    def restored(cls, checksum: str, values: Any) -> Self:
        """The version that a file tells, with the id that its content has."""
        told = {} if values is None else convert("version", values, dict[str, str | None])
        return cls(checksum[:DIGITS], **told)


def now() -> str:
    """The time of writing."""
    text = os.environ.get(EPOCH, "")
    if text and not (text.isascii() and text.isdecimal() and len(text) < 12):
        raise DataError(f"expected a number of seconds, found {text!r:.40}", field=EPOCH)
    when = datetime.fromtimestamp(int(text), UTC) if text else datetime.now(UTC)
    return when.isoformat(timespec="seconds")
