"""What a caller says about the fields of documents, which readers are told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from didyma.data.attributes import Attributes
from didyma.data.records import Fail, fail_in_document
from didyma.data.schema import Schema
from didyma.errors import LeftOutWarning, warn
from didyma.files import PathName


class FieldChoice(NamedTuple):
    """What a caller says about fields of documents, or the schema that a model was trained with."""

    fields: Sequence[str] = ()
    signals: Sequence[str] = ()
    ignore: Sequence[str] = ()
    schema: Schema | None = None

    @property
    def texts(self) -> tuple[str, ...]:
        """Names of fields that are texts whatever they are called."""
        if self.schema is None:
            return tuple(self.fields)
        return tuple(field.name for field in self.schema.of_role("text"))

    def read(
        self,
        documents: Sequence[Any],
        *,
        names: Mapping[str, str] | None = None,
        taken: Mapping[str, str] | None = None,
        path: PathName | None = None,
        fail: Fail = fail_in_document,
    ) -> tuple[list[str], Attributes | None]:
        """Whole texts, and attributes if there are any; a warning says what does not count."""
        schema = self.schema
        if schema is None:
            fields, signals, ignore, _ = self
            schema = Schema.infer(
                documents,
                fields=fields,
                signals=signals,
                ignore=ignore,
                names=names,
                taken=taken,
                fail=fail,
            )
            schema.warn_of_ignored(path)
        texts, attributes, report = schema.read(documents, fail=fail)
        if self.schema is not None and report.unknown:
            place = "" if path is None else f"{path}: "
            unknown = ", ".join(report.unknown)
            warn(f"{place}fields that the model does not know: {unknown}", LeftOutWarning)
        return texts, attributes if schema.has_attributes else None
