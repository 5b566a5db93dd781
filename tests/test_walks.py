"""Histories that nobody thought of: chance decides what a person does in the client and at the command line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from desks import desks
from walking import Walk

SEEDS = int(os.environ.get("SESSGIT_TEST_WALKS") or 12)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_nothing_is_lost(
    seed: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    Walk(desks(monkeypatch, capsys, tmp_path), seed).go(16)
