"""All targets: readers, models, requests and commands."""

from __future__ import annotations

from tests.fuzz.commands import COMMANDS
from tests.fuzz.models import MODELS
from tests.fuzz.readers import READERS
from tests.fuzz.requests import REQUESTS

__all__ = ["TARGETS"]

TARGETS = [*READERS, *MODELS, *REQUESTS, *COMMANDS]
