"""A value in places where a purge could miss it, and values that are hard to find."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from purging import SESSION, VALUE, git, holders, refs, whole
from shell import Shell
from test_value_match import matcher
from transcripts import OTHER

from sessgit.purge import scan
from sessgit.store.store import Store

LINES = "first half of it" + "\n" + "second half of it"


def purged(sessgit: Shell, value: str = VALUE) -> None:
    done = sessgit("purge", value, "--yes")
    assert done.code == 0, done
    assert holders(sessgit.store, value) == []
    whole(sessgit)


def again(sessgit: Shell) -> None:
    """Recording all of the client's files anew changes nothing."""
    after = refs(sessgit.store)
    for path in (sessgit.store / "state").glob("*.json"):
        path.unlink()
    sessgit.out("import")
    assert refs(sessgit.store) == after


def test_a_large_file_is_searched_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The value may lie in any piece, and in two."""
    monkeypatch.setattr(scan, "_CHUNK_SIZE", 100)
    path = tmp_path / "large"
    for place in range(0, 400, 7):
        path.write_bytes(b"x" * place + b" plainSecret17 " + b"y" * (400 - place))
        assert scan.file_holds(path, matcher("plainSecret17")), place
    path.write_bytes(b"x" * 400)
    assert not scan.file_holds(path, matcher("plainSecret17"))


def test_a_number_in_the_state(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one"))
    sessgit.out("edit", SESSION, "--confidence", "0.718281828")
    assert sessgit("purge", "0.718281828", "--yes").code == 0
    assert json.loads(git(sessgit.store, "show", f"{SESSION}:session.json"))["authored"]["confidence"] == 0
    assert holders(sessgit.store, "0.718281828") == []
    whole(sessgit)


def test_a_rewound_branch_is_named_by_the_key_of_now(sessgit: Shell) -> None:
    one = sessgit.talk().turns("one")
    leaf = one.leaf
    one.prompt_without_uuid(f"so {VALUE}").answer("yes").stop_lines()
    one.leaf = leaf
    one.prompt("another way").answer("ok").stop_lines()
    sessgit.recorded(one)
    (before,) = (ref for ref in refs(sessgit.store) if ".r-" in ref)
    purged(sessgit)
    (after,) = (ref for ref in refs(sessgit.store) if ".r-" in ref)
    assert after != before
    again(sessgit)


@pytest.mark.parametrize("end", ["\n", ""], ids=["whole", "without its last newline"])
def test_a_turn_that_no_recording_cut_comes_out_as_one_would_cut_it(sessgit: Shell, end: str) -> None:
    long = f"see {VALUE}\n" + "a line of a file\n" * 400
    one = sessgit.talk().prompt("read").tool("Read", {"file_path": "/x"}, long).answer("ok").stop_lines()
    sessgit.recorded(one)
    folder = "turns/0000/000001"
    (name,) = git(sessgit.store, "ls-tree", "--name-only", f"{SESSION}:{folder}/texts").split()
    store = Store(sessgit.store)
    tip = store.commit(refs(sessgit.store)[f"refs/heads/{SESSION}"])
    lines = git(sessgit.store, "show", f"{SESSION}:{folder}/transcript.jsonl").replace(name, "another-name")
    body = (lines.rstrip("\n") + end).encode()
    text = git(sessgit.store, "show", f"{SESSION}:{folder}/texts/{name}").encode()
    changes: dict[str, tuple[str, bool] | None] = {
        f"{folder}/transcript.jsonl": (store.repo.write_blob(body), False),
        f"{folder}/texts/another-name": (store.repo.write_blob(text), False),
        f"{folder}/texts/{name}": None,
    }
    tree = store.repo.edit_tree(tip.tree, changes)
    made = store.repo.write_commit(tree, list(tip.parents), tip.message, tip.time)
    store.repo.release()
    git(sessgit.store, "update-ref", f"refs/heads/{SESSION}", made)
    purged(sessgit)
    (after,) = git(sessgit.store, "ls-tree", "--name-only", f"{SESSION}:{folder}/texts").split()
    assert after[8:] == name[8:]
    recut = git(sessgit.store, "show", f"{SESSION}:{folder}/transcript.jsonl")
    assert recut == lines.rstrip("\n").replace("another-name", after) + "\n"


def test_a_value_of_several_lines_that_a_tool_numbered(sessgit: Shell) -> None:
    rows = [*(f"line {n} of the file" for n in range(200)), *LINES.split("\n"), *(f"and {n}" for n in range(200))]
    numbered = "\n".join(f"{n:6d}\u2192{row}" for n, row in enumerate(rows, 1))
    one = sessgit.talk().prompt("read").tool("Read", {"file_path": "/x"}, numbered).answer("ok").stop_lines()
    sessgit.recorded(one)
    assert holders(sessgit.store, LINES)
    purged(sessgit, LINES)
    again(sessgit)


@pytest.mark.parametrize(
    "value",
    ["tiger/lily " + '"4711"', "größe" + " 4711 ☃", "a<b>&'c' " + "4711", "back\\slash" + "4711", "emoji 🦊" + " 4711"],
)
def test_a_value_in_the_escapes_of_other_json_writers(sessgit: Shell, value: str) -> None:
    php = json.dumps({"v": value}).replace("/", "\\/")
    go = (
        json.dumps({"v": value}, ensure_ascii=False)
        .replace("<", "\\u003c")
        .replace(">", "\\u003e")
        .replace("&", "\\u0026")
    )
    upper = "".join(c if c.isascii() and c.isalnum() else f"\\u{ord(c):04X}" for c in value if ord(c) < 0x10000)
    one = sessgit.talk().prompt(f"see {php}").tool("Bash", {"command": go}, json.dumps({"inner": php, "go": go}))
    one.answer("ok").stop_lines()
    one.lines[-1:] = [one.lines[-1], f'{{"type":"x","v":"{upper}"}}'.encode()]
    sessgit.recorded(one)
    purged(sessgit, value)
    text = "".join(git(sessgit.store, "show", f"{SESSION}:{path}") for path in files(sessgit.store))
    for form in (php[7:-2], go[7:-2]):
        assert form not in text, form
        assert json.dumps(form)[1:-1] not in text, form
    again(sessgit)


def files(store: Path) -> list[str]:
    return git(store, "ls-tree", "-r", "--name-only", SESSION).splitlines()


def test_what_git_itself_and_other_people_left(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one", f"see {VALUE}"))
    store = sessgit.store
    as_me = ("-c", "user.name=a", "-c", "user.email=a@b")
    git(store, *as_me, "notes", "add", "-m", f"note {VALUE}", SESSION)
    git(store, *as_me, "tag", "-a", "v1", "-m", f"about {VALUE}", SESSION)
    tree = git(store, "write-tree").strip()
    foreign = git(store, *as_me, "commit-tree", "-m", f"foreign {VALUE}", tree).strip()
    git(store, "update-ref", "refs/other/x", foreign)
    git(
        store,
        "-c",
        "core.logAllRefUpdates=always",
        *as_me,
        "update-ref",
        "-m",
        f"log {VALUE}",
        "refs/other/y",
        foreign,
        "",
    )
    (store / "objects" / "pack" / "tmp_pack_abc").write_text(VALUE)
    (store / "state" / "damaged").mkdir()
    loose = next(path for path in (store / "objects").glob("??/*"))
    shutil.copy(loose, store / "state" / "damaged" / "x")
    (store / "FETCH_HEAD").write_text(f"{foreign} not-for-merge {VALUE}\n")
    purged(sessgit)


def test_twice_and_of_what_a_first_one_left_no_trace(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one", f"see {VALUE}"))
    purged(sessgit)
    after = refs(sessgit.store)
    purged(sessgit)
    assert refs(sessgit.store) == after
    assert [one["command"] for one in sessgit.json("ops")["operations"]].count("purge") == 1
    known = (sessgit.store / "state" / "forbidden").read_bytes()
    assert VALUE.encode() not in known
    assert known.count(b'"id"') == 1


@pytest.mark.parametrize("pattern", ["x*", "nothing-has-this-[0-9]{9}", "(?s).{30,}", r"\w{6,}"])
def test_an_expression_that_matches_nothing_or_too_much(sessgit: Shell, pattern: str) -> None:
    sessgit.recorded(sessgit.talk().turns("one", f"see {VALUE}", *(f"word{n:06d} and more" for n in range(3))))
    before = refs(sessgit.store)
    done = sessgit("purge", "--regex", pattern, "--yes")
    print(done)
    if pattern in ("x*", "nothing-has-this-[0-9]{9}"):
        assert refs(sessgit.store) == before
    whole(sessgit)


def test_the_words_of_the_index_do_not_keep_it(sessgit: Shell) -> None:
    word = "zebrafish" + "4711"
    sessgit.recorded(sessgit.talk().turns("one", f"see {word}"))
    assert sessgit.json("search", word)
    purged(sessgit, word)
    for path in sessgit.store.glob("*.sqlite3*"):
        assert word.encode() not in path.read_bytes()
    assert not json.loads(sessgit("search", word, "--json").out or "{}").get("hits")


def test_a_fork_of_the_clients_own_without_its_origin(sessgit: Shell) -> None:
    one = sessgit.talk().turns("one", f"see {VALUE}")
    sessgit.recorded(one)
    other = one.fork_session(OTHER)
    other.turns("on")
    sessgit.recorded(other)
    sessgit.out("archive", OTHER)
    purged(sessgit)
    state = json.loads(git(sessgit.store, "show", f"refs/archive/{OTHER}:session.json"))
    assert state["origin"] is None or state["origin"]["session"] == SESSION
