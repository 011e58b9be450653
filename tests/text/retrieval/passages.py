"""Passages that all engines of these tests have."""

from __future__ import annotations

PASSAGES = [
    ("emma", "Emma", "A novel by Jane Austen about a matchmaker.", 1815),
    ("faust", "Faust", "A play by Goethe; the devil makes a bet.", 1808),
    ("tides", "Tides", "The moon's pull moves the sea twice a day.", 1900),
    ("odd", "It's", "Quotes ' and \" and \\ and % and {braces}; austen again.", None),
]
