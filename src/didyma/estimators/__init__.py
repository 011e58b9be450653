"""Rankers with the interface of scikit-learn."""
