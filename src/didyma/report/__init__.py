"""Reports for people to look at."""
