"""Whole subjects, built on the library as a user could build them."""
