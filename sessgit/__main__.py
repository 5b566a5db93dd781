"""`python -m sessgit` is the same as `sessgit`."""

from sessgit.ui.cli import main

if __name__ == "__main__":
    main()
