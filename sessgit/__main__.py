"""The program: `sessgit`, and `python -m sessgit`."""

import signal
from typing import NoReturn


def main() -> NoReturn:
    """Runs the command that the arguments name, and exits; an interruption while it loads ends it in silence."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from sessgit.ui import cli

    cli.main()


if __name__ == "__main__":
    main()
