"""Tasks: features, a structure and a loss become a problem for a learner."""
