"""The command line, as ``didyma`` and as ``python -m didyma``."""

from __future__ import annotations

import signal


def main() -> None:
    """Run it; Ctrl-C while it is still being imported ends the process without a traceback."""
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from didyma.cli import main as run

    signal.signal(signal.SIGINT, handler)
    run()


if __name__ == "__main__":
    main()
