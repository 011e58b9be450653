"""Studies whose tables stand in docs/RESULTS.md, one module for each."""
