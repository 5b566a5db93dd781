"""Lines of a transcript that sessgit itself writes: turns laid out again, those of programs, and what is appended."""
