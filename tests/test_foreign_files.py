"""Folders that somebody else wrote: no link followed, nothing without a bound, every file accounted for."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest
from foreigners import put
from hypothesis import given
from hypothesis import strategies as st

from sessgit.errors import NotFoundError, UsageError
from sessgit.exchange import apex, files
from sessgit.exchange.files import DamagedFileError
from sessgit.model import canonical
from sessgit.model.foreign_session import ForeignSession, SourceFile


def test_links_and_pipes_are_named_and_never_read(tmp_path: Path) -> None:
    put(tmp_path / "secret" / "x.json", "1")
    put(tmp_path / "in" / "a.json", "2")
    (tmp_path / "in" / "b.json").symlink_to(tmp_path / "secret" / "x.json")
    (tmp_path / "in" / "c").symlink_to(tmp_path / "secret")
    os.mkfifo(tmp_path / "in" / "d.json")
    folder = files.open_folder(tmp_path / "in")
    assert folder.names("*.json") == ["a.json"]
    assert folder.files() == (
        SourceFile("a.json", "left", "unknown kind of file"),
        SourceFile("b.json", "left", f"it is a link to {tmp_path}/secret/x.json; links are not followed"),
        SourceFile("c", "left", f"it is a link to {tmp_path}/secret; links are not followed"),
        SourceFile("d.json", "left", "it is not a regular file"),
    )
    for name in ("b.json", "d.json"):
        with pytest.raises(DamagedFileError):
            folder.data(name)


def test_what_is_no_folder_or_too_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NotFoundError):
        files.open_folder(tmp_path / "nowhere")
    monkeypatch.setattr(files, "MOST_ENTRIES", 2)
    for name in "abc":
        put(tmp_path / "in" / name, "")
    with pytest.raises(UsageError, match="more than 2 files"):
        files.open_folder(tmp_path / "in")


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "it is empty"),
        (b"  \n", "it is empty"),
        (b'{"a":', "it is not JSON"),
        (b"\xff\xfe", "it is not UTF-8"),
        (b"[" * 100_000, "its values are nested too deeply"),
        (b"[" * 200 + b"]" * 200, "its values are nested too deeply"),
        (b"1" * 5000, "it is not JSON"),
    ],
)
def test_json_that_is_none(data: bytes, why: str) -> None:
    with pytest.raises(DamagedFileError, match=why):
        files.parse_json(data)


def test_json_as_others_write_it() -> None:
    assert files.parse_json(b'\xef\xbb\xbf{"a":NaN,"b":1e999,"c":"\\ud83d","d":"\\ud83d\\ude00"}') == {
        "a": None, "b": None, "c": "?", "d": "😀",
    }  # fmt: skip


def test_lines_whatever_is_wrong_with_others() -> None:
    found = files.parse_lines(b'\xef\xbb\xbf{"a":1}\r\nno\n[2]\n\n{"b":"\xe2\x80\xa8"}\n{"c":')
    assert found == files.Lines(({"a": 1}, {"b": "\u2028"}), (2, 3), torn=True)
    assert found.why == "2 lines are not JSON; its last line is torn"
    assert files.parse_lines(b'{"a":1}') == files.Lines(({"a": 1},))


def test_what_is_packed(tmp_path: Path) -> None:
    put(tmp_path / "a.json.gz", gzip.compress(b'{"a":') + gzip.compress(b"1}"))
    assert files.open_folder(tmp_path).object("a.json.gz") == {"a": 1}
    for data, why in [
        (gzip.compress(b"x" * 1000)[:-9], "truncated"),
        (b"no", "damaged"),
        (gzip.compress(b"\0" * (files.LARGEST_FILE + 1)), "more than 64 MB"),
    ]:
        with pytest.raises(DamagedFileError, match=why):
            files.gunzip(data)


def test_a_file_that_is_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "a.json", "1" * 100)
    monkeypatch.setattr(files, "LARGEST_FILE", 99)
    with pytest.raises(DamagedFileError, match="it is larger than"):
        files.open_folder(tmp_path).data("a.json")


def test_the_last_word_counts_but_damage_stays(tmp_path: Path) -> None:
    put(tmp_path / "a", "")
    folder = files.open_folder(tmp_path)
    folder.note("a", "empty")
    folder.note("a", "damaged", "odd", "s")
    folder.note("a", "imported")
    assert folder.files() == (SourceFile("a", "damaged", "odd", "s"),)


def test_names_that_no_terminal_should_see(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    Path(os.fsdecode(os.fsencode(tmp_path / "in") + b"/a\x1b[31m\xff")).touch()
    (found,) = files.open_folder(tmp_path / "in").files()
    assert found.path == "a\ufffd[31m\ufffd"


@given(st.text(max_size=300))
def test_a_path_to_keep_a_file_by_is_sound(path: str) -> None:
    kept = files.storable_path(path)
    assert files.storable_path(kept) == kept
    for part in kept.split("/"):
        assert part not in ("", ".", "..")
        assert part.lower() != ".git"
        assert canonical.is_printable(part)


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from(["", *"abcdx"])), max_size=8))
def test_parents_come_first_and_nobody_is_lost(pairs: list[tuple[str, str]]) -> None:
    sessions = [ForeignSession(own, parent=parent, title=str(n)) for n, (own, parent) in enumerate(pairs)]
    found = files.sort_parents_first(sessions)
    assert sorted(found, key=lambda one: int(one.title)) == sessions
    parents = {one.id: one.parent for one in reversed(sessions)}
    place = {id(one): n for n, one in enumerate(found)}
    first = {one.id: one for one in reversed(sessions)}
    for one in sessions:
        seen, above = {one.id}, one.parent
        while above in parents and above not in seen:
            seen.add(above)
            above = parents[above]
        if one.parent in first and above not in seen:  # in no circle
            assert place[id(first[one.parent])] < place[id(one)]


def test_an_index_of_two() -> None:
    path = ".apex/sessions/index.json"
    one, two = ({"version": 1, "sessions": [{"id": name}], "lastUpdated": name} for name in "ab")
    both = apex.merge_documents(path, json.dumps(one).encode(), json.dumps(two).encode())
    assert both is not None
    assert json.loads(both) == {"version": 1, "sessions": [{"id": "a"}, {"id": "b"}], "lastUpdated": "b"}
    assert apex.merge_documents(path, both, json.dumps(two).encode()) == both
    assert apex.merge_documents(path, b"no", both) is None
    assert apex.merge_documents("other.json", both, both) is None
