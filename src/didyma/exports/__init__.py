"""Models for other engines: one description of what a ranker computes, one file for each engine."""
