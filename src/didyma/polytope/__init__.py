"""Solvers over the convex hull of what an oracle can name."""
