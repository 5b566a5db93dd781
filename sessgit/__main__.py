"""The program: `sessgit`, and `python -m sessgit`."""

import gc
import signal
import sys


def main() -> None:
    """Runs the command that the arguments name, and exits; an interruption while it loads ends it in silence."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # A command loads and makes many values, and few cycles: to look for those would be a fifth of what `ls` takes, and
    # a tenth of `log` of 5,000 turns.
    gc.set_threshold(500_000)
    try:
        if sys.argv[1:2] == ["--brief"]:
            from sessgit.cli import answer

            answer.brief(sys.argv[2:])
        if sys.argv[1:] == ["mcp"]:
            from sessgit.cli import mcp  # without the rest: every open client starts one

            mcp.main()
            return
        if sys.argv[1:] == ["prompt"]:
            from sessgit.cli import prompt

            prompt.main()
            return
        from sessgit.cli import app

        app.main()
    finally:
        gc.freeze()  # nor are they looked for at the end: all goes with the process


if __name__ == "__main__":
    main()
