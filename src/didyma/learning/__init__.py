"""Learners of structural SVMs, over problems that answer with cuts."""
