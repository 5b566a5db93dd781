"""Redaction of a transcript's lines, as a recording does it."""

from functools import partial

from sessgit import agents
from sessgit.redact import replacer

PROTECTED_KEYS = agents.of_programs().protected_keys
redact_line = partial(replacer.redact_line, protected=PROTECTED_KEYS)
