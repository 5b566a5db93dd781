"""Files of subagents that are not what they were: the client took lines back, or another session has one so called."""

from __future__ import annotations

import json
from pathlib import Path

from plain import Git, Keep
from transcripts import OTHER, Talk


def line(text: str, **more: str) -> str:
    return json.dumps({"type": "user", "message": {"content": text}, "uuid": text} | more) + "\n"


def agents(git: Git, session: str) -> dict[str, str]:
    """What is recorded of subagents, by the turn and the name."""
    paths = [path for path in git("ls-tree", "-r", "--name-only", session, "turns").split() if "/agent-" in path]
    return {f"{int(path.split('/')[2])} {path.rpartition('/')[2]}": git("show", f"{session}:{path}") for path in paths}


def test_lines_that_took_the_place_of_others_are_whole(keep: Keep, git: Git, claude: Path) -> None:
    talk = Talk().turns("one")
    file = claude / talk.session / "subagents" / "agent-x.jsonl"
    file.parent.mkdir(parents=True)
    kept = line("begins", promptId=talk.prompt_id)
    file.write_text(kept + line("taken back"))
    keep(talk)
    file.write_text(kept + line("said in its place, and longer than that"))
    keep(talk.turns("two"))
    with file.open("a") as more:
        more.write(line("goes on"))
    keep(talk.turns("three"))
    assert agents(git, talk.session) == {
        "1 agent-x.jsonl": kept + line("taken back"),
        "2 agent-x.jsonl": line("said in its place, and longer than that"),
        "3 agent-x.jsonl": line("goes on"),
    }


def test_a_line_of_megabytes_in_the_place_of_another_is_whole(keep: Keep, git: Git, claude: Path) -> None:
    talk = Talk().turns("one")
    file = claude / talk.session / "subagents" / "agent-x.jsonl"
    file.parent.mkdir(parents=True)
    kept = line("begins", promptId=talk.prompt_id)
    file.write_text(kept + line("x" * 300_000))
    keep(talk)
    file.write_text(kept + line("y" * 400_000))
    keep(talk.turns("two"))
    assert agents(git, talk.session)["2 agent-x.jsonl"] == line("y" * 400_000)


def test_another_sessions_file_of_the_same_name_stays_its_own(keep: Keep, git: Git, claude: Path) -> None:
    """Earlier clients left all of them in the folder of the transcripts."""
    talk = Talk().turns("one")
    file = claude / talk.session / "subagents" / "agent-x.jsonl"
    file.parent.mkdir(parents=True)
    ours = line("ours", promptId=talk.prompt_id)
    file.write_text(ours)
    keep(talk)
    (claude / "agent-x.jsonl").write_text(line("theirs", sessionId=OTHER) + line("and more of it, so that it is long"))
    keep(talk.turns("two"), final=True)
    assert agents(git, talk.session) == {"1 agent-x.jsonl": ours}
    before = git("rev-list", "--all")
    assert not keep(talk, final=True).changed
    assert git("rev-list", "--all") == before
