"""Secrets in transcripts: the table of rules that finds them, and the replacer that takes them out of a line."""

RULES_VERSION = 1
"""Stored with every session; it rises with each release whose rules make another text come out.

Stores from before the first release have numbers up to 7: they are read, and what is recorded in them stays.
"""
