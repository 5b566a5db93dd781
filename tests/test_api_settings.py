"""A program that stays goes by the settings as they are now."""

from __future__ import annotations

from shell import Shell
from transcripts import SESSION

from sessgit import Store


def test_folders_that_stand_for_others_are_those_of_now(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk(cwd="/elsewhere/code/app").turns("one"))
    (sessgit.home / "app").mkdir()
    with Store.open() as store:
        session = store.load_session(SESSION)
        assert [one.project for one in store.sessions()] == ["/elsewhere/code/app"]
        sessgit.out("config", "project.map./elsewhere/code", str(sessgit.home))
        here = str(sessgit.home / "app")
        assert [one.project for one in store.sessions()] == [here]
        assert [one.id for one in store.sessions(project=here)] == [SESSION]
        assert session.resume_command == f"cd {here} && claude --resume {SESSION}"
        sessgit.out("config", "--unset", "project.map./elsewhere/code")
        assert [one.project for one in store.sessions()] == ["/elsewhere/code/app"]
