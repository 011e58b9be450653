"""What a release must pass beyond the tests."""
