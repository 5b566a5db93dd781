"""Waiting for what another process does, as long as a busy machine may need for it."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE = 120.0
"""Seconds after which a test gives up. It costs nothing where all is well, so it allows for a machine under load."""


def until(is_so: Callable[[], object]) -> None:
    """Return once the condition holds; fail if it does not within `PATIENCE` seconds."""
    deadline = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)
