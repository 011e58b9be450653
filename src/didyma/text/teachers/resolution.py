"""From what a user names or has to a teacher."""

from __future__ import annotations

from typing import Any, TypeAlias

from didyma.errors import DataError
from didyma.text.teachers.command import CommandTeacher
from didyma.text.teachers.endpoint import Dialect, EndpointTeacher
from didyma.text.teachers.objects import ObjectTeacher
from didyma.text.teachers.teacher import Teacher

TeacherLike: TypeAlias = Any
"""A `Teacher`, an address, a command, a cross-encoder, or a function."""


def resolve(value: TeacherLike, dialect: Dialect | None = None) -> Teacher:
    """The teacher that is meant.

    Parameters
    ----------
    value : Teacher, str, object or callable
        An address (``http://…``, ``https://…``, see `EndpointTeacher`) or a command (any other
        text, see `CommandTeacher`); a cross-encoder, or a function of a query and documents that
        gives scores (see `ObjectTeacher`).
    dialect : {"cohere", "jina", "tei"}, optional
        Of an address, if its path does not tell.

    >>> resolve("http://localhost:8000/v2/rerank")
    EndpointTeacher('http://localhost:8000/v2/rerank')
    >>> resolve("python teacher.py")
    CommandTeacher('python teacher.py')
    """
    is_address = isinstance(value, str) and value.lower().startswith(("http://", "https://"))
    if dialect is not None and not is_address:
        raise DataError("only an address has one", field="dialect")
    if isinstance(value, Teacher):
        return value
    if is_address:
        return EndpointTeacher(value, dialect)
    return CommandTeacher(value) if isinstance(value, str) else ObjectTeacher(value)
