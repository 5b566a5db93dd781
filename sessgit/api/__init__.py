"""The library: what `from sessgit import …` offers."""
