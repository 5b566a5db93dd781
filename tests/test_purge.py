"""A value out of a whole store: nowhere afterwards, and everything else as it was."""

from __future__ import annotations

import base64
import json
import shutil
from pathlib import Path

import pytest
from damaging import Recorded
from homes import claude_homes
from purging import CLIENTS, PLAIN, SESSION, VALUE, git, holders, refs, talk, told, whole
from shell import Shell
from transcripts import OTHER, Talk, subagent

from sessgit.agents.claude import home
from sessgit.purge import purge as purges
from sessgit.store import secret_filter
from sessgit.store import store as stores
from sessgit.store.context import Context
from sessgit.store.index import Index
from sessgit.store.layout import StorePaths
from sessgit.store.store import Store

ODD = 'he said "no\\never"\tand ünÿe ' + "4711" + "\nthen left"


def purge(sessgit: Shell, value: str = VALUE) -> str:
    done = sessgit("purge", value, "--yes")
    assert (done.code, done.err) == (0, ""), done
    assert value not in done.out
    return done.out


def everything(sessgit: Shell, value: str = VALUE) -> None:
    """Conversations with the value wherever it can be: forks, an archive, tags, pads, merges, what a deletion and an
    edit took away, packs."""
    told(sessgit, value)
    sessgit.out("fork", SESSION, "--at", "2", "--name", "by hand")
    sessgit.out("fork", f"{SESSION}.r-a0000002", "--at", "2.1", "--name", "by cell")
    sessgit.out("tag", "good", f"{SESSION}@1")
    sessgit.out("edit", SESSION, "--description", f"once {value.split(chr(9), maxsplit=1)[0]}")
    sessgit.out("edit", SESSION, "--description", "and now without")
    sessgit.out("merge", CLIENTS, "--into", PLAIN)
    sessgit.out("pick", f"{SESSION}@1", "--into", PLAIN)
    sessgit.out("gc")
    sessgit.out("archive", CLIENTS)
    sessgit.out("fork", SESSION, "--at", "1", "--name", "gone")
    sessgit.out("delete", "gone", "--yes")


@pytest.mark.parametrize("value", [VALUE, ODD], ids=["plain", "odd"])
def test_a_value_is_nowhere_afterwards_and_all_else_stays(sessgit: Shell, value: str) -> None:
    everything(sessgit, value)
    before, turns = refs(sessgit.store), subjects(sessgit.store)
    assert len(holders(sessgit.store, value)) > 10
    purge(sessgit, value)
    assert holders(sessgit.store, value) == []
    assert refs(sessgit.store).keys() == before.keys()
    assert {one.split(":")[0] for one in subjects(sessgit.store)} == {one.split(":")[0] for one in turns}
    whole(sessgit)
    assert sessgit.json("log", PLAIN)["turns"][0]["prompt"] == "first"


def test_what_did_not_hold_it_is_not_touched(sessgit: Shell) -> None:
    everything(sessgit)
    sessgit.recorded(sessgit.talk("5e551011-0000-4000-8000-0000000000aa").turns("one", "two"))
    before = refs(sessgit.store)
    purge(sessgit)
    after = refs(sessgit.store)
    assert [name for name in before if before[name] == after[name]] == [
        "refs/heads/5e551011-0000-4000-8000-0000000000aa"
    ]
    purge(sessgit)
    assert refs(sessgit.store) == after


def test_forks_stay_forks(sessgit: Shell) -> None:
    everything(sessgit)
    before = git(sessgit.store, "log", "--all", "--graph", "--format=%(trailers:key=Session)%(trailers:key=Turn)")
    purge(sessgit)
    assert (
        git(sessgit.store, "log", "--all", "--graph", "--format=%(trailers:key=Session)%(trailers:key=Turn)") == before
    )
    forked = next(one for one in sessgit.json("ls", "--all")["sessions"] if one["name"] == "by hand")
    state = json.loads(git(sessgit.store, "show", f"{forked['id']}:session.json"))
    assert git(sessgit.store, "merge-base", forked["id"], SESSION).strip() == state["origin"]["commit"]
    turn = "turns/0000/000001"
    assert git(sessgit.store, "rev-parse", f"{forked['id']}:{turn}") == git(
        sessgit.store, "rev-parse", f"{SESSION}:{turn}"
    )


@pytest.mark.parametrize("granularity", ["turn", "cell"])
def test_recording_the_clients_files_anew_changes_nothing(sessgit: Shell, granularity: str) -> None:
    stores.create_store(sessgit.store)
    assert sessgit("config", "record.granularity", granularity).code == 0
    told(sessgit)
    purge(sessgit)
    after = refs(sessgit.store)
    sessgit.out("import")
    assert refs(sessgit.store) == after
    for path in (sessgit.store / "state").glob("*.json"):
        path.unlink()  # without its memory the recorder reads each file from its beginning
    sessgit.out("import")
    assert refs(sessgit.store) == after


def test_a_store_that_knew_it_from_the_start_has_the_very_same_trees(sessgit: Shell) -> None:
    told(sessgit)
    shutil.rmtree(sessgit.store)
    sessgit.out("import")
    assert holders(sessgit.store)
    purge(sessgit)
    purged = told_by_commits(sessgit.store)
    known, key = (sessgit.store / "state" / "forbidden").read_bytes(), (sessgit.store / "key").read_bytes()
    shutil.rmtree(sessgit.store)
    stores.create_store(sessgit.store)
    (sessgit.store / "state" / "forbidden").write_bytes(known)
    (sessgit.store / "key").write_bytes(key)
    sessgit.out("import")
    assert holders(sessgit.store) == []
    assert told_by_commits(sessgit.store) == purged


def test_what_comes_later_does_not_bring_it_back(sessgit: Shell) -> None:
    told(sessgit)
    purge(sessgit)
    again = sessgit.talk("5e551011-0000-4000-8000-0000000000aa").prompt(f"once more {VALUE}")
    again.tool("Bash", {"command": f"x {VALUE}"}, f"{VALUE} twice").answer("ok").stop_lines()
    subagent(home.project_folder(sessgit.config, str(sessgit.project)), again, "cd34", f"{VALUE} here")
    sessgit.recorded(again)
    assert sessgit("edit", SESSION, "--description", f"it was {VALUE}").code == 0
    assert sessgit("fork", SESSION, "--at", "1", "--name", f"with {VALUE}".replace("/", " ")).code == 0
    assert sessgit("pad", "claim", f"{VALUE} is the key").code == 0
    assert holders(sessgit.store) == []
    whole(sessgit)


def test_a_pad(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one", "two"))
    for words in (f"{VALUE} opens it", "nothing opens it"):
        assert sessgit("pad", "claim", words).code == 0
    ids = [entry["id"] for entry in sessgit.json("pad", SESSION)["entries"]]
    assert sessgit("pad", "tension", "both cannot be", "--between", ids[0], "--between", ids[1]).code == 0
    purge(sessgit)
    first, second, tension = sessgit.json("pad", SESSION)["entries"]
    assert (first["text"], second["text"]) == ("[redacted:purged] opens it", "nothing opens it")
    assert (first["id"] != ids[0], second["id"] == ids[1]) == (True, True)
    assert tension["between"] == [first["id"], second["id"]]
    assert holders(sessgit.store) == []


def test_side_files_spool_log_and_operations(sessgit: Shell) -> None:
    told(sessgit)
    store = sessgit.store
    event = {"hook_event_name": "Stop", "session_id": SESSION, "transcript_path": "/x.jsonl", "cwd": "/", "last": VALUE}
    (store / "spool" / "1-1.json").write_text(json.dumps(event))
    (store / "spool" / "2-1.json").write_text(f"no json {VALUE}")
    (store / "log").write_text(f"2026-03-01T10:00:00.000Z 1.0 it failed: {VALUE}\n")
    sessgit.out("edit", SESSION, "--description", f"now {VALUE}")
    assert VALUE in (store / "operations.jsonl").read_text()
    purge(sessgit)
    assert holders(store) == []
    assert json.loads((store / "spool" / "1-1.json").read_text())["last"] == "[redacted:purged]"
    assert (store / "spool" / "2-1.json").read_text() == "no json [redacted:purged]"
    assert (store / "log").read_text() == "2026-03-01T10:00:00.000Z 1.0 it failed: [redacted:purged]\n"
    words = [one["summary"] for one in sessgit.json("ops")["operations"]]
    assert words[0] == "1 value purged"
    assert "now [redacted:purged]" in words[1]


def test_a_purge_is_for_good(sessgit: Shell) -> None:
    told(sessgit)
    sessgit.out("edit", SESSION, "--name", "called so")
    purge(sessgit)
    done = sessgit("undo")
    assert (done.code, done.out) == (3, "")
    assert "a purge cannot be undone" in done.err
    purged, renamed = sessgit.json("ops")["operations"][:2]
    assert sessgit("undo", purged["id"]).code == 3
    # What was done before it can be taken back: its commits are those of now.
    sessgit.out("undo", renamed["id"])
    assert name(sessgit.store) == ""
    assert "called so" in sessgit.out("log", SESSION, "--at-op", purged["id"])
    whole(sessgit)
    assert holders(sessgit.store) == []


def test_recording_goes_on_from_its_cursor(sessgit: Shell) -> None:
    one = talk(sessgit)
    path = sessgit.recorded(one)
    sessgit.out("purge", VALUE, "--yes")
    known = json.loads((sessgit.store / "state" / f"{SESSION}.json").read_text())
    assert known["commit"] == refs(sessgit.store)[f"refs/heads/{SESSION}"]
    one.prompt("further").answer("on").stop_lines()
    assert sessgit.keep(one) == path
    sessgit.out("import")
    assert [turn["turn"] for turn in sessgit.json("log", SESSION)["turns"]] == [1, 2, 3, 4]
    whole(sessgit)


@pytest.mark.parametrize("is_open", [False, True], ids=["recorded", "waiting"])
def test_no_hash_of_the_file_goes_on_from_what_it_held(
    store: Store, index: Index, claude: Path, *, is_open: bool
) -> None:
    """Neither where the value is in a turn, nor in lines that wait for the next one. Of other files it goes on."""
    kept = Recorded(store, index, claude)
    talk, other = Talk().turns("one"), Talk(OTHER).turns("one")
    talk = talk.title(VALUE) if is_open else talk.turns(f"now {VALUE}")
    kept.keep(talk)
    kept.keep(other)
    nothing = purges.PurgeProgress()
    purges.purge_values(Context(index, homes=claude_homes(claude.parents[1]), now=lambda: 0), (VALUE,), nothing)
    assert store.message(kept.tip()).get("File-Hash") == ""
    kept.keep(talk.turns("later"))
    kept.keep(other.turns("later"))
    assert kept.found() == []
    assert store.message(kept.tip()).get("File-Hash") == ""
    assert store.message(kept.tip(OTHER)).get("File-Hash")


def test_a_dry_run_says_where_and_changes_nothing(sessgit: Shell) -> None:
    files = told(sessgit)
    before = snapshot(sessgit.store)
    out = sessgit.out("purge", VALUE, "--dry-run")
    assert snapshot(sessgit.store) == before
    assert VALUE not in out
    assert out.startswith("2 conversations hold it:\n  5e551011  turns 1, 2, 3: ")
    assert "subagents" in out
    assert all(str(path).replace(str(sessgit.home), "~") in out for path in files)
    document = sessgit.json("purge", VALUE, "--dry-run")
    assert document["found"] is True
    assert [one["id"] for one in document["sessions"]] == [SESSION, CLIENTS]
    assert sorted(document["client_files"]) == sorted(map(str, files))
    assert document["operation_id"] is None


def test_it_asks_before(sessgit: Shell) -> None:
    told(sessgit)
    done = sessgit("purge", VALUE)
    assert (done.code, done.out) == (2, "")
    assert "--dry-run" in done.err


def test_from_standard_input(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    import io
    import sys

    told(sessgit)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(f"{VALUE}\n".encode())))
    assert sessgit("purge", "-", "--yes").code == 0
    assert holders(sessgit.store) == []


def test_a_regular_expression(sessgit: Shell) -> None:
    told(sessgit)
    done = sessgit("purge", "--regex", r"tiger-L\w+/[0-9]{4}\+Z\w+", "--yes")
    assert done.code == 0, done
    assert holders(sessgit.store) == []
    whole(sessgit)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("abc",), 2),
        (("      ",), 2),
        ((), 2),
        (("x" * 70_000,), 2),
        (("--regex", "(", "--yes"), 2),
        (("--regex", ".", "--yes"), 2),
        (("value1", "--find"), 2),
        (("--secret", "abcd1234", "--yes"), 4),
        ((SESSION, "--yes"), 3),
        (("a0000001-0000-4000", "--yes"), 3),
        (("tool_result", "--yes"), 3),
        (("assistant", "--yes"), 3),
        (("content", "--yes"), 3),
        (('","type":"', "--yes"), 3),
    ],
)
def test_what_cannot_be_purged_changes_nothing(sessgit: Shell, words: tuple[str, ...], code: int) -> None:
    told(sessgit)
    before = refs(sessgit.store)
    done = sessgit("purge", *words)
    assert (done.code, done.out) == (code, ""), done
    assert refs(sessgit.store) == before
    assert secret_filter.denied_values(StorePaths(sessgit.store)) == []


def test_a_value_in_the_settings_is_a_persons_to_take_out(sessgit: Shell) -> None:
    told(sessgit)
    sessgit.out("remote", "add", "origin", f"https://me:{VALUE.replace('/', '')}@example.org/x")
    done = sessgit("purge", VALUE.replace("/", ""), "--yes")
    assert done.code == 3
    assert "the address of a remote holds the value" in done.err


def test_a_value_that_nothing_holds_is_kept_out(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one"))
    assert purge(sessgit).startswith("Nothing in the store holds it; it is blocked from now on\n")
    sessgit.recorded(sessgit.talk("5e551011-0000-4000-8000-0000000000aa").turns(f"now {VALUE}"))
    assert holders(sessgit.store) == []


def test_likely_secrets_are_found_and_named_by_an_id(sessgit: Shell) -> None:
    secret = "ghp" + "_" + "a1B2" * 9
    stores.create_store(sessgit.store)
    assert sessgit("config", "record.redact", "false").code == 0
    sessgit.recorded(sessgit.talk().turns(f"the token {secret} is mine", "and nothing"))
    (found,) = likely(sessgit)
    assert (found["kind"], found["length"]) == ("github-token", len(secret))
    assert secret not in sessgit.out("purge", "--find")
    assert sessgit("purge", "--secret", str(found["id"])[:6], "--yes").code == 0
    assert holders(sessgit.store, secret) == []
    assert likely(sessgit) == []


def test_a_title_that_was_cut_off_inside_of_it(sessgit: Shell) -> None:
    words = "so much to say about it " * 7
    long = VALUE * 3
    sessgit.recorded(sessgit.talk().prompt(f"{words}{long} and on").answer("ok").stop_lines())
    purge(sessgit, long)
    assert VALUE not in git(sessgit.store, "log", "--all", "--format=%B")
    assert VALUE not in git(sessgit.store, "show", f"{SESSION}:session.json")
    assert "[redacted:purged]" in git(sessgit.store, "show", f"{SESSION}:session.json")


def test_a_prompt_without_a_uuid_keeps_its_turn(sessgit: Shell) -> None:
    one = sessgit.talk().prompt_without_uuid(f"old and {VALUE}").answer("yes").prompt("next").answer("ok").stop_lines()
    sessgit.recorded(one)
    purge(sessgit)
    after = refs(sessgit.store)
    for path in (sessgit.store / "state").glob("*.json"):
        path.unlink()
    sessgit.out("import")
    assert refs(sessgit.store) == after
    whole(sessgit)


def test_tags_are_named_anew(sessgit: Shell) -> None:
    word = VALUE.replace("/", "-")
    sessgit.recorded(sessgit.talk().turns("one", "two"))
    sessgit.out("tag", f"v-{word}", f"{SESSION}@1")
    done = sessgit.json("purge", word, "--yes")
    assert done["tags"] == ["v-purged"]
    assert list(git(sessgit.store, "tag").split()) == ["v-purged"]


def test_base64_of_it_goes_too(sessgit: Shell) -> None:
    coded = base64.b64encode(f"me:{VALUE}".encode()).decode()
    sessgit.recorded(sessgit.talk().turns(f"curl -H 'X: {coded}'"))
    purge(sessgit)
    assert holders(sessgit.store) == []


def told_by_commits(store: Path) -> dict[str, list[tuple[str, dict[str, str], dict[str, object]]]]:
    """Of each branch the messages, files and states of its commits, without what no two stores have in common."""
    out = {}
    for ref in refs(store):
        commits = git(store, "rev-list", ref).split()
        out[ref] = [(_message(store, one), *_tree(store, one)) for one in commits]
    return out


def _message(store: Path, commit: str) -> str:
    lines = git(store, "show", "-s", "--format=%B", commit).splitlines()
    return "\n".join(line for line in lines if not line.startswith(("Original-HMAC: ", "File-Hash: ")))


def _tree(store: Path, commit: str) -> tuple[dict[str, str], dict[str, object]]:
    rows = (line.split("\t") for line in git(store, "ls-tree", "-r", "--full-tree", commit).splitlines())
    state = json.loads(git(store, "show", f"{commit}:session.json"))
    (state["origin"] or {}).pop("commit", None)
    return {path: entry.split()[2] for entry, path in rows if path != "session.json"}, state


def likely(sessgit: Shell) -> list[dict[str, object]]:
    found = json.loads(sessgit.out("purge", "--find", "--json"))["secrets"]
    assert isinstance(found, list)
    return found


def name(store: Path) -> str:
    return str(json.loads(git(store, "show", f"{SESSION}:session.json"))["authored"]["name"])


def subjects(store: Path) -> list[str]:
    return git(store, "log", "--all", "--format=%s").splitlines()


def snapshot(store: Path) -> dict[str, bytes]:
    """All files of a store but the index."""
    return {
        str(path.relative_to(store)): path.read_bytes()
        for path in store.rglob("*")
        if path.is_file() and ".sqlite3" not in path.name
    }
