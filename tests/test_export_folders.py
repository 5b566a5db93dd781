"""What an export as a folder does not take, said by the option that is too much."""

from __future__ import annotations

import pytest
from shell import Done, Shell
from transcripts import SESSION


@pytest.mark.parametrize("form", ["claude", "rlm", "dialectic", "apex", "io-log"])
def test_options_of_other_formats(sessgit: Shell, form: str) -> None:
    sessgit.recorded(sessgit.talk().turns("one"))
    whole = "exports whole conversations.\nHint: --turns, --no-tools and --full go with the other formats."
    replaced = "replaces no file.\nHint: --output DIR names a folder that has room for all of it."
    for option, said in (("--turns=1", whole), ("--no-tools", whole), ("--full", whole), ("--force", replaced)):
        assert sessgit("export", form, SESSION, "-o", "out", option) == Done(2, "", f"Error: {form} {said}\n")
    assert not (sessgit.project / "out").exists()
