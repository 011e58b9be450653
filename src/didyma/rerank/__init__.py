"""From a query and its candidates to a ranking that says what it means and why."""
