"""Structured prediction from an argmax."""

__version__ = "0.1.0"
