"""What `didyma demo` shows: learning on text that is on every machine."""
