"""Transformers of features that know queries."""
