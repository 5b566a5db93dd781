"""What an export as a folder does not take, said by the option that is too much."""

from __future__ import annotations

import pytest
from shell import Done, Shell
from transcripts import SESSION


@pytest.mark.parametrize("form", ["claude", "rlm", "dialectic", "apex", "io-log"])
def test_options_of_other_formats(sessgit: Shell, form: str) -> None:
    sessgit.recorded(sessgit.talk().turns("one"))
    whole = (
        "exports only whole conversations.\n"
        "Hint: --turns, --no-tools and --full work with markdown, html, json and jsonl."
    )
    replaced = (
        "never overwrites a file, so --force does not apply.\nHint: Name a new or empty folder with `--output DIR`."
    )
    for option, said in (("--turns=1", whole), ("--no-tools", whole), ("--full", whole), ("--force", replaced)):
        assert sessgit("export", form, SESSION, "-o", "out", option) == Done(2, "", f"Error: {form} {said}\n")
    assert not (sessgit.project / "out").exists()
