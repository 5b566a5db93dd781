"""What programs set of a session's state: set, carried along, taken over, brought together, and told."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from clones import Clone, bare, described
from homes import claude_homes
from hypothesis import given
from hypothesis import strategies as st
from machines import on_another
from merging import THEIRS, diverged
from plain import Git, Keep, run_git
from shell import Shell
from transcripts import OTHER, SESSION, Talk
from unifying import EVERYTHING, NOW, PARTS, change

from sessgit.api import documents, program_state
from sessgit.api.program_state import StateRequest
from sessgit.branch import fork as forks
from sessgit.branch import undo as undoing
from sessgit.errors import NotFoundError, UsageError
from sessgit.history import resolve
from sessgit.history.resolve import ResolvedTarget
from sessgit.model import merge_decisions
from sessgit.model.conversation import session as sessions
from sessgit.model.conversation.session import Activation, Budget, Memory, Session, Trajectory, Unified
from sessgit.model.prices import Price
from sessgit.store import layout, operations
from sessgit.store.context import Context
from sessgit.store.index import Branch, Index, remove_cache
from sessgit.store.store import Store

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"

INHERITED = {k: part for k, part in EVERYTHING.items() if k != "trajectory"} | {"metadata": {"rlm_version": "2.1"}}
"""What a fork takes over."""


def head(index: Index, session: str = SESSION) -> Branch:
    index.sync()
    found = index.branch(session)
    assert found is not None
    return found


def own(index: Index, session: str = SESSION) -> Unified:
    return head(index, session).state.unified


def stored(store: Store, commit: str) -> dict[str, Any]:
    """The document as it lies in the tree."""
    entry = store.repo.entry(store.tree(commit), layout.STATE)
    assert entry
    found: dict[str, Any] = json.loads(store.repo.blob(entry[0]))
    return found


# Set


def test_everything_that_can_be_set(store: Store, index: Index, keep: Keep, git: Git) -> None:
    keep(Talk().turns("one"))
    before = head(index)
    commit = change(store, index, SESSION, EVERYTHING)
    assert head(index) == Branch(SESSION, commit, store.state(commit))
    document = stored(store, commit)
    for part, keys in EVERYTHING.items():
        assert {key: document[part][key] for key in keys} == keys
    assert git("show", "-s", "--format=%B", commit).split("\n\n") == [
        "edit: rlm active true, activation mode “complexity”, activation reason…",
        f"Session: {SESSION}\nEvent: edit",
        "",
    ]
    assert git("diff-tree", "-r", "--name-only", "--no-commit-id", commit) == "session.json\n"
    # What already exists is no change.
    assert change(store, index, SESSION, EVERYTHING) == ""
    # Everything taken away again, it is the document that it was, byte for byte.
    gone = change(store, index, SESSION, dict.fromkeys(EVERYTHING))
    assert sessions.dumps(store.state(gone)) == sessions.dumps(before.state)
    assert store.repo.entry(store.tree(gone), layout.STATE) == store.repo.entry(store.tree(before.tip), layout.STATE)


def test_what_is_not_named_stays(store: Store, index: Index, keep: Keep) -> None:
    keep(Talk().turns("one"))
    change(store, index, SESSION, EVERYTHING)
    change(store, index, SESSION, {"activation": {"current_depth": 2, "activation_reason": None}})
    assert own(index).activation == Activation(True, "complexity", None, 0.75, 2, 3)
    change(store, index, SESSION, remember={"next": "write", "é": None}, forget=("plan", "nothing"))
    assert own(index).working_memory == {"é": None, "next": "write"}
    change(store, index, SESSION, more={"total_recursive_calls": 3, "cost_usd": 0.1})
    assert own(index).budget == Budget(50, 15, 0.35)
    change(store, index, SESSION, {"context": {"working_memory": {"all": "new"}}}, remember={"and": "this"})
    assert own(index).working_memory == {"all": "new", "and": "this"}
    change(store, index, SESSION, {"context": None})
    assert own(index).working_memory == {}
    assert (own(index).trajectory.export_path, own(index).metadata.rlm_version) == ("/home/ada/out.json", "2.1")


@pytest.mark.parametrize("value", [True, 1, 1.0, None, "1", [1], {}])
def test_a_value_is_kept_as_json_has_it(store: Store, index: Index, keep: Keep, value: object) -> None:
    keep(Talk().turns("one"))
    change(store, index, SESSION, remember={"x": 2})
    for other in (True, 1, 1.0, value):
        change(store, index, SESSION, remember={"x": other})
    assert json.dumps(stored(store, head(index).tip)["context"]["working_memory"]["x"]) == json.dumps(value)
    assert own(index).working_memory == {"x": value}


def test_undo_takes_a_change_back(store: Store, index: Index, keep: Keep, tmp_path: Path) -> None:
    keep(Talk().turns("one"))
    before = head(index)
    commit = change(store, index, SESSION, remember={"plan": 1})
    (listed,) = operations.list_operations(store)
    assert (listed.operation.command, listed.operation.summary) == ("state", "5e551011: memory +plan")
    undoing.undo_operation(store, "", claude_homes(tmp_path), NOW)
    assert head(index) == before
    undoing.undo_operation(store, operations.list_operations(store)[0].operation.id, claude_homes(tmp_path), NOW)
    assert head(index).tip == commit


def test_secrets_are_replaced_where_the_session_is_redacted(store: Store, index: Index, keep: Keep) -> None:
    keep(Talk().turns("one"))
    keep(Talk(OTHER).turns("two"), redact=False)
    wanted = {"activation": {"activation_reason": f"uses {SECRET}"}, "context": {"working_memory": {"a": {SECRET: 1}}}}
    for session, count in ((SESSION, 4), (OTHER, 0)):
        commit = change(store, index, session, wanted, remember={"b": [SECRET], "password": "hunter2-but-longer"})
        document = json.dumps(stored(store, commit))
        assert (document.count("[redacted:"), SECRET in document + store.commit(commit).message) == (count, not count)
        left = store.state(change(store, index, session, forget=("b",)))
        assert left.unified.working_memory.keys() == {"a", "password"}


@pytest.mark.parametrize(
    ("wanted", "error", "hint"),
    [
        (StateRequest({"mood": {}}), "a program sets no “mood” of a state", "It sets metadata, activation, context"),
        (StateRequest({"authored": {"name": "x"}}), "a program sets no “authored” of a state", "It sets metadata"),
        (StateRequest({"metadata": {"title": "x"}}), "a program sets no “title” in metadata",
         "It sets rlm_version, role, parent."),
        (StateRequest({"context": {"files": {}}}), "a program sets no “files” in context", "It sets working_memory."),
        (StateRequest({"trajectory": {"turns": 9}}), "a program sets no “turns” in trajectory", "It sets export_path."),
        (StateRequest({"activation": True}), "activation of a state is an object", "Its keys are rlm_active"),
        (StateRequest({"activation": {"rlm_active": 1}}), "activation.rlm_active: input should be a valid boolean", ""),
        (StateRequest({"activation": {"max_depth": 4}}),
            "activation.max_depth: input should be less than or equal to 3", ""),
        (StateRequest({"activation": {"current_depth": -1}}), "activation.current_depth: input should be greater", ""),
        (StateRequest({"activation": {"activation_mode": "odd"}}), "activation.activation_mode: input should be 'comp",
            ""),
        (StateRequest({"budget": {"cost_usd": -1}}), "budget.cost_usd: input should be greater than or equal to 0", ""),
        (StateRequest({"budget": {"cost_usd": float("nan")}}), "what a program sets of a state cannot be", ""),
        (StateRequest({"context": {"working_memory": [1]}}), "context.working_memory: input should be a valid dict",
            ""),
        (StateRequest({"context": {"working_memory": {"x": {1, 2}}}}), "what a program sets of a state cannot be", ""),
        (StateRequest(more={"max_recursive_calls": -1}), "budget.max_recursive_calls: input should be greater than or",
            ""),
        (StateRequest(more={"total_recursive_calls": 0.5}),
            "budget.total_recursive_calls: input should be a valid int", ""),
        (StateRequest([1]), "the state that a program sets must be an object", ""),  # type: ignore[arg-type]
        (StateRequest(remember={"x": "y" * 65_536}), "the working memory would have 65.5 kB, but at most 65.5 kB are "
        "allowed", "Remove"),
        (StateRequest(remember={"x": json.loads("[" * 100 + "]" * 100)}), "is nested more than 100 deep",
            "Store deeper"),
    ],
)  # fmt: skip
def test_what_is_wrong_changes_nothing(
    store: Store, index: Index, keep: Keep, wanted: StateRequest, error: str, hint: str
) -> None:
    keep(Talk().turns("one"))
    tip = head(index).tip
    with pytest.raises(UsageError) as caught:
        program_state.change_state(Context(index, now=lambda: NOW), SESSION, wanted)
    assert error in str(caught.value)
    assert hint in caught.value.hint
    assert head(index).tip == tip
    assert operations.list_operations(store) == []


def test_a_session_that_is_not_there(store: Store, index: Index) -> None:
    with pytest.raises(NotFoundError):
        change(store, index, SESSION, remember={"x": 1})


def test_a_memory_may_be_as_large_as_that(store: Store, index: Index, keep: Keep) -> None:
    keep(Talk().turns("one"))
    room = sessions.LARGEST_MEMORY - len('{"x":"","y":0}')
    change(store, index, SESSION, remember={"x": "é" * (room // 2), "y": 0})
    assert sessions.memory_size(own(index).working_memory) == sessions.LARGEST_MEMORY
    with pytest.raises(UsageError, match="at most"):
        change(store, index, SESSION, remember={"y": 10})
    change(store, index, SESSION, remember={"y": 1})
    # What a join made larger can be made smaller in steps.
    tip = head(index).tip
    large = replace(head(index).state, unified=Unified(context=Memory({"a": "x" * 50_000, "b": "y" * 50_000, "c": 1})))
    commit = store.write_commit(tip, {}, large, store.message(tip), [tip], store.commit(tip).time)
    store.repo.move(layout.head_ref(SESSION), tip, commit)
    change(store, index, SESSION, forget=("c",))
    assert own(index).working_memory.keys() == {"a", "b"}


def test_what_nobody_could_read_goes_where_it_is_set(store: Store, index: Index, keep: Keep) -> None:
    keep(Talk().turns("one"))
    tip = head(index).tip
    document = json.loads(sessions.dumps(head(index).state))
    document["activation"] = {"activation_mode": "sometimes", "mood": "good"}
    odd = sessions.loads(document)
    assert odd.unified == sessions.NO_STATE
    commit = store.write_commit(tip, {}, odd, store.message(tip), [tip], store.commit(tip).time)
    store.repo.move(layout.head_ref(SESSION), tip, commit)
    commit = change(store, index, SESSION, {"activation": {"rlm_active": True}})
    assert stored(store, commit)["activation"] == {**document["activation"], "rlm_active": True}
    commit = change(store, index, SESSION, {"activation": {"activation_mode": None}})
    assert stored(store, commit)["activation"] == {"mood": "good", "rlm_active": True}


def test_many_changes_between_two_turns_are_one_commit_each(store: Store, index: Index, keep: Keep) -> None:
    talk = Talk().turns("one")
    keep(talk)
    for number in range(30):
        change(store, index, SESSION, remember={"step": number}, more={"total_recursive_calls": 1})
    keep(talk.turns("two"))
    assert (own(index).working_memory, own(index).budget.total_recursive_calls) == ({"step": 29}, 30)
    assert [row.turn for row in index.turns(SESSION)] == [1, 2]
    turns, branches = index.turns(SESSION), index.branches()
    index.close()
    remove_cache(layout.StorePaths(store.path).index)
    anew = Index(store.path, lambda: store)
    anew.sync()
    assert (anew.turns(SESSION), anew.branches()) == (turns, branches)
    anew.close()


# Carried along, taken over


def test_a_rewind_carries_it_over(store: Store, index: Index, keep: Keep) -> None:
    talk = Talk().turns("one", "two")
    keep(talk)
    change(store, index, SESSION, EVERYTHING)
    keep(talk.turns("three"))
    keep(talk.rewind(1).turns("instead"))
    assert sessions.state_document(own(index)) == EVERYTHING
    assert head(index).state.turns == 2


def _forked(store: Store, index: Index, turn: int, session: str) -> Session:
    index.sync()
    point = resolve.fork_point(Context(index), ResolvedTarget(head(index), turn))
    return forks.fork_session(store, head(index).state, point, forks.ForkPlan(session, "", NOW, None)).state


def test_a_fork_takes_it_as_of_its_turn(store: Store, index: Index, keep: Keep) -> None:
    talk = Talk().turns("one")
    keep(talk)
    change(store, index, SESSION, EVERYTHING)
    keep(talk.turns("two"))
    change(store, index, SESSION, {"activation": {"current_depth": 2}}, remember={"plan": "later"})
    first = _forked(store, index, 1, "f1").unified
    assert sessions.state_document(first) == INHERITED
    second = _forked(store, index, 2, "f2").unified
    assert (second.activation.current_depth, second.working_memory["plan"]) == (2, "later")
    keep(talk.turns("three"))
    assert _forked(store, index, 2, "f3").unified == second


def test_a_copy_that_the_client_made_takes_it_as_of_its_turn(store: Store, index: Index, keep: Keep) -> None:
    talk = Talk().turns("one")
    keep(talk)
    change(store, index, SESSION, EVERYTHING)
    keep(talk.turns("two"))
    copy = talk.fork_session()
    change(store, index, SESSION, remember={"plan": "later"})
    keep(copy.turns("theirs"))
    assert sessions.state_document(own(index, OTHER)) == INHERITED


# Two machines


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[list[Clone]]:
    """Two machines with a session of one turn, of which the first said something."""
    clock, remote = itertools.count(), bare(tmp_path / "remote")
    made = [Clone(tmp_path / f"clone-{number}", remote, number, clock) for number in range(2)]
    made[0].record(Talk().turns("one"))
    change(made[0].store, made[0].index, SESSION, EVERYTHING)
    made[0].push()
    made[1].pull()
    yield made
    for clone in made:
        clone.check()
        clone.close()
    assert run_git(remote, "fsck", "--strict", "--no-dangling") == ""


def test_what_two_machines_set_is_joined(machines: list[Clone]) -> None:
    one, two = machines
    more = {"total_recursive_calls": 2, "cost_usd": 0.5}
    program_state.change_state(
        Context(one.index, now=one.now), SESSION,
        StateRequest({"activation": {"current_depth": 0}}, {"a": 1, "both": "one"}, more=more),
    )  # fmt: skip
    wanted = StateRequest(
        {"activation": {"current_depth": 3, "rlm_active": False}, "trajectory": {"export_path": "/two"}},
        {"b": 2, "both": "two"}, ("é",), {"total_recursive_calls": 1},
    )  # fmt: skip
    program_state.change_state(Context(two.index, now=two.now), SESSION, wanted)
    one.push()
    assert described(two.pull().changes) == [("joined", 0, "")]
    found = two.store.state(two.tip()).unified
    assert found.activation == Activation(False, "complexity", "three modules", 0.75, 3, 3)
    assert found.working_memory == {
        "plan": EVERYTHING["context"]["working_memory"]["plan"],
        "a": 1,
        "b": 2,
        "both": "two",
    }
    assert found.budget == Budget(50, 15, 0.75)
    assert (found.trajectory.export_path, found.metadata.rlm_version) == ("/two", "2.1")
    two.push(), one.pull()
    assert one.tip() == two.tip()


def test_turns_of_one_and_words_of_the_other_are_joined(machines: list[Clone]) -> None:
    one, two = machines
    two.record(on_another(Talk().turns("one")).turns("two"))
    program_state.change_state(Context(one.index, now=one.now), SESSION, StateRequest(remember={"a": 1}))
    one.push()
    assert described(two.pull().changes) == [("joined", 0, "")]
    found = two.store.state(two.tip())
    assert (found.turns, found.unified.working_memory["a"]) == (2, 1)


def joined(base: Unified | None, ours: Unified, theirs: Unified, *, later: bool) -> Unified:
    return merge_decisions.join_program_states(base, ours, theirs, "theirs" if later else "ours")


@given(PARTS, PARTS, PARTS, st.booleans(), st.booleans())
def test_a_join_is_the_same_from_both_sides(
    base: Unified, ours: Unified, theirs: Unified, later: bool, known: bool
) -> None:
    began = base if known else None
    there = joined(began, ours, theirs, later=later)
    back = joined(began, theirs, ours, later=not later)
    assert sessions.is_same_json(sessions.state_document(there), sessions.state_document(back))


@given(PARTS, PARTS, st.booleans())
def test_a_join_keeps_what_only_one_side_changed(base: Unified, ours: Unified, later: bool) -> None:
    for left, right in ((ours, base), (base, ours)):
        found = joined(base, left, right, later=later)
        assert sessions.is_same_json(sessions.state_document(found), sessions.state_document(ours))
    assert joined(None, ours, ours, later=later) == ours


def test_a_join_without_a_beginning_counts_nothing_twice() -> None:
    ours, theirs = (Unified(budget=Budget(None, calls, cost)) for calls, cost in ((5, 0.5), (3, 0.75)))
    found = joined(None, ours, theirs, later=True)
    assert (found.budget.total_recursive_calls, found.budget.cost_usd) == (5, 0.75)


# The whole state as one document


def test_the_whole_state_as_other_programs_have_it(store: Store, index: Index, keep: Keep) -> None:
    talk = Talk().prompt("Look").tool("Write", {"file_path": "/p/a.py", "content": "x = 1\n"}, "written")
    talk.tool("Read", {"file_path": "/p/b.py"}, "     1→y = 2").tool("Bash", {"command": "ls"}, "z" * 3000, error=True)
    keep(talk.tool("Task", {"prompt": "look"}, "found").answer("There."))
    prices = {"claude-test-1": Price(1.0, 2.0, 0.0, 0.0)}
    found = documents.state_document(Context(index), head(index), prices)
    context = found["context"]
    assert context.keys() == {"files", "tool_outputs", "working_memory"}
    assert {path: set(file) - {"first_access", "last_access"} for path, file in context["files"].items()} == {
        "/p/a.py": {"hash", "size_bytes"}, "/p/b.py": set()
    }  # fmt: skip
    assert context["files"]["/p/a.py"]["hash"] == hashlib.sha256(b"x = 1\n").hexdigest()
    assert context["working_memory"] == {}
    assert [one["tool_name"] for one in context["tool_outputs"]] == ["Write", "Read", "Bash", "Task"]
    assert len(context["tool_outputs"][2]["content_preview"]) == 1000
    assert found["metadata"] == {
        "session_id": SESSION, "created_at": 1772359201.0, "updated_at": found["metadata"]["updated_at"],
        "ended_at": None, "cwd": "/home/ada/shop", "claude_transcript_path": head(index).state.transcript,
    }  # fmt: skip
    assert found["activation"] == {
        "rlm_active": False, "activation_mode": "never", "activation_reason": None, "complexity_score": None,
        "current_depth": 0,
    }  # fmt: skip
    assert found["budget"].keys() == {"total_tokens_used", "total_recursive_calls", "cost_usd", "by_model"}
    assert found["budget"]["total_recursive_calls"] == 1
    assert found["budget"]["by_model"]["claude-test-1"].keys() == {"calls", "tokens", "cost_usd"}
    assert found["cells"] == {"count": 9, "index_path": "cells/index.json"}
    assert found["trajectory"] == {"export_path": None, "events_count": 6}


def test_what_a_program_set_goes_before_what_is_computed(store: Store, index: Index, keep: Keep) -> None:
    keep(Talk().turns("one"))
    change(store, index, SESSION, EVERYTHING)
    found = documents.state_document(Context(index), head(index), {})
    assert found["activation"] == EVERYTHING["activation"]
    assert {key: found["budget"][key] for key in EVERYTHING["budget"]} == EVERYTHING["budget"]
    assert found["context"] == {"files": {}, "tool_outputs": [], **EVERYTHING["context"]}
    assert (found["metadata"]["rlm_version"], found["trajectory"]["export_path"]) == ("2.1", "/home/ada/out.json")


# Shown and merged on the command line


def _set(sessgit: Shell, session: str, parts: dict[str, Any] | None = None, **more: Any) -> None:
    store = Store(sessgit.store)
    index = Index(store.path, lambda: store)
    change(store, index, session, parts, **more)
    index.close()


def test_the_card_of_a_session_tells_it(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one"))
    before = sessgit.out("show", SESSION)
    _set(sessgit, SESSION, EVERYTHING, remember={f"a key \x1b[31m{number}": "x" * 50 for number in range(9)})
    new = [line for line in sessgit.out("show", SESSION).splitlines() if line not in before.splitlines()]
    assert new == [
        "Program     2.1  ·  active (complexity)  ·  complexity 0.75  ·  depth 1 of 3",
        "            recursive calls 12 of 50  ·  $0.25 in total",
        "            three modules",
        "Memory      11 keys, 697 B:  a key  [31m0  a key  [31m1  a key  [31m2",
        "            a key  [31m3  a key  [31m4  a key  [31m5  and 5 more",
        "Exported    /home/ada/out.json",
        "Role        manager",
        "Family      child of a0000000",
    ]
    _set(sessgit, SESSION, dict.fromkeys(EVERYTHING))
    _set(sessgit, SESSION, {"activation": {"rlm_active": False, "max_depth": 2}})
    (line,) = (line for line in sessgit.out("show", SESSION).splitlines() if line not in before.splitlines())
    assert line == "Program     not active  ·  depth up to 2"
    found = sessgit.json("show", SESSION)["session"]["program"]
    assert (found["max_depth"], found["export_path"]) == (2, None)


def test_a_merge_brings_together_what_programs_set(sessgit: Shell) -> None:
    diverged(sessgit)
    _set(sessgit, SESSION, {"activation": {"max_depth": 2, "current_depth": 1}}, remember={"a": 1, "plan": "ours"})
    _set(
        sessgit, THEIRS, {"activation": {"max_depth": 3}, "budget": {"total_recursive_calls": 4, "cost_usd": 0.5}},
        remember={"b": [2], "plan": {"by": "them"}},
    )  # fmt: skip
    _set(sessgit, SESSION, more={"total_recursive_calls": 1})
    done = sessgit("merge", THEIRS, "--into", SESSION)
    assert (done.code, done.err) == (
        3,
        """\
Error: both sides changed:
  activation.max_depth: ours 2, theirs 3
  context.working_memory.plan: ours “ours”, theirs {"by":"them"}
Hint: Use `--ours` or `--theirs` for all of them. Nothing was changed.
""",
    )
    assert sessgit.out("merge", THEIRS, "--into", SESSION, "--theirs", "--dry-run").splitlines()[1:] == [
        "  append       a summary of 2 turns, as turn 4",
        "  union        files 0 + 2 → 2 · working memory 2 + 2 → 3",
        "  take         activation.max_depth 3 (theirs)",
        "  take         context.working_memory.plan (theirs)",
        "  add          total recursive calls 1 + 4 → 5 · cost usd 0 + 0.5 → 0.5",
    ]
    plan = sessgit.json("merge", THEIRS, "--into", SESSION, "--theirs", "--dry-run")
    decided = {one["path"]: (one["action"], one["value"]) for one in plan["decisions"]}
    assert decided["budget.total_recursive_calls"] == ("add", 5)
    assert decided["context.working_memory"] == ("unite", {"a": 1, "b": [2], "plan": {"by": "them"}})
    sessgit.out("merge", THEIRS, "--into", SESSION, "--theirs")
    store = Store(sessgit.store)
    index = Index(store.path, lambda: store)
    found = own(index)
    assert found.activation == Activation(current_depth=1, max_depth=3)
    assert (found.budget, found.working_memory) == (Budget(None, 5, 0.5), {"a": 1, "b": [2], "plan": {"by": "them"}})
    index.close()
    # Once more nothing is counted again; what theirs counts from now on is.
    assert sessgit("merge", THEIRS, "--into", SESSION).err == "e90c55aa is already merged into 5e551011.\n"
    _set(sessgit, THEIRS, more={"total_recursive_calls": 2})
    sessgit.out("merge", THEIRS, "--into", SESSION)
    index = Index(store.path, lambda: store)
    assert own(index).budget == Budget(None, 7, 0.5)
    index.close()


def test_a_merge_into_a_new_session_has_what_was_decided(sessgit: Shell) -> None:
    diverged(sessgit)
    _set(sessgit, SESSION, {"trajectory": {"export_path": "/ours"}}, remember={"a": 1})
    _set(sessgit, THEIRS, {"trajectory": {"export_path": "/theirs"}}, remember={"b": 2})
    made = sessgit.json("merge", THEIRS, "--into", SESSION, "--new", "both")["session_id"]
    store = Store(sessgit.store)
    index = Index(store.path, lambda: store)
    assert own(index, made) == Unified(context=Memory({"a": 1, "b": 2}))
    assert own(index) == Unified(context=Memory({"a": 1}), trajectory=Trajectory("/ours"))
    index.close()


def test_a_memory_that_would_be_too_large_is_refused(sessgit: Shell) -> None:
    diverged(sessgit)
    _set(sessgit, SESSION, remember={"a": "x" * 40_000})
    _set(sessgit, THEIRS, remember={"b": "y" * 40_000})
    done = sessgit("merge", THEIRS, "--into", SESSION)
    assert (done.code, done.err) == (
        3,
        "Error: the working memory would have 80.0 kB, but at most 65.5 kB are allowed.\n"
        "Hint: The program that owns it can remove something from one of the two.\n",
    )
