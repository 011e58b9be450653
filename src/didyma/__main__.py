"""``python -m didyma`` is the command line."""

from didyma.cli import main

main()
