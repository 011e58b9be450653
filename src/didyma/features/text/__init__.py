"""Features of a query and a passage from their texts alone."""
