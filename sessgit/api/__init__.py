"""The library: what `from sessgit import Store` gives."""
