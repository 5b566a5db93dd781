"""Several threads, processes and children of one program, and programs that are killed: nothing is lost."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from preloaded import Started
from programs import Place, raises
from waiting import until

from sessgit import Outcome, Session, Store, Task
from sessgit.errors import ConflictError, UsageError
from sessgit.store import store as stores

OTHER, LAST = b"0e000000-0000-4000-8000-000000000001", b"0e000000-0000-4000-8000-000000000002"


def at_once(count: int, work: Callable[[int], None]) -> None:
    """Runs the work in so many threads, all of which begin together."""
    gate = threading.Barrier(count)

    def begin(number: int) -> None:
        gate.wait()
        work(number)

    with ThreadPoolExecutor(count) as pool:
        list(pool.map(begin, range(count)))


def program(code: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", code, *arguments], text=True, stdout=subprocess.PIPE)


def is_one_chain(place: Place, session: Session) -> bool:
    lines = place.lines(session)
    uuids = [line["uuid"] for line in lines]
    times = [line["timestamp"] for line in lines]
    return (
        [line["parentUuid"] for line in lines] == [None, *uuids[:-1]]
        and len(set(uuids)) == len(uuids)
        and times == sorted(set(times))
    )


def test_threads_with_one_session(place: Place) -> None:
    session = place.begin()
    made: list[tuple[str, int]] = []

    def work(number: int) -> None:
        for step in range(4):
            if number % 2:
                with session.turn(f"{number}.{step}", timeout=60) as turn, session.cell(f"in {number}") as cell:
                    cell.result = [number, step]
                made.append((cell.id, turn.number))
            else:
                cell_ = session.begin_cell(type="repl", operation=f"loose {number}", args={"step": step})
                session.complete_cell(cell_, step)
                made.append((cell_.id, 0))

    at_once(8, work)
    cells = {cell.id: cell for cell in session.cells()}
    assert sorted(cells) == sorted(name for name, _ in made)
    assert {cell.state for cell in cells.values()} == {"done"}
    assert session.pending() == []
    assert is_one_chain(place, session)
    numbers = [turn.number for turn in session]
    assert numbers == list(range(1, len(numbers) + 1))


def test_threads_that_open_the_store_at_once(seal: Path) -> None:
    (seal / "calc").mkdir()
    stores: list[Store] = []
    at_once(8, lambda _: stores.append(Store.open()))
    place = Place(stores[0], seal / "calc")
    sessions: list[Session] = []
    at_once(8, lambda n: sessions.append(place.store.create_session(place.project, f"s{n}")))
    at_once(8, lambda n: sessions[n].record_turn("hello"))
    assert sorted(one.name for one in stores[1].sessions()) == [f"s{n}" for n in range(8)]
    place.check()


def test_a_session_object_is_shared_by_threads_from_its_first_use_on(place: Place) -> None:
    ident = place.begin().id
    for _ in range(5):
        session = place.again().load_session(ident)
        with_turn: list[int] = []

        def work(number: int, session: Session = session, seen: list[int] = with_turn) -> None:
            cell = session.begin_cell(type="repl", operation=f"{number}")
            session.complete_cell(cell)
            seen.append(number)

        at_once(6, work)
        assert sorted(with_turn) == list(range(6))


PROCESS = """
import sys
from sessgit import Store
session = Store.open().load_session(sys.argv[1])
for step in range(4):
    if int(sys.argv[2]) % 2:
        with session.turn(f"{sys.argv[2]}.{step}", timeout=60), session.cell("in a turn") as cell:
            cell.result = step
    else:
        begun = session.begin_cell(type="repl", operation=f"loose {sys.argv[2]}")
        session.complete_cell(begun, step)
print("done")
"""


def test_processes(place: Place) -> None:
    session = place.begin()
    running = [Started(PROCESS, session.id, str(number)) for number in range(6)]
    assert [one.end() for one in running] == ["done\n"] * 6
    assert len(session.cells()) == 24
    assert [turn.number for turn in session] == list(range(1, 25))
    assert session.pending() == []
    assert is_one_chain(place, session)
    assert place.git("for-each-ref", "--format=%(refname:short)", "refs/heads").split() == [session.id]


def test_commands_that_record_at_the_same_moment(place: Place) -> None:
    session = place.begin()
    over = threading.Event()

    def watch() -> None:
        while not over.is_set():
            subprocess.run([sys.executable, "-m", "sessgit", "log", session.id], check=True, capture_output=True)

    with ThreadPoolExecutor(1) as pool:
        watching = pool.submit(watch)
        for number in range(12):
            with session.turn(f"turn {number}"):
                for step in range(3):
                    with session.cell(f"step {step}") as cell:
                        cell.result = step
                time.sleep(0.05)
        over.set()
        watching.result()
    assert [turn.number for turn in session] == list(range(1, 13))
    assert len(session.cells()) == 36
    assert place.git("for-each-ref", "--format=%(refname:short)", "refs/heads").split() == [session.id]


@pytest.mark.parametrize("grows", [-1, 0, 2000])
def test_a_file_that_was_cut_and_grew_again(place: Place, grows: int) -> None:
    session = place.begin()
    for prompt in ("one", "two"):
        session.record_turn(prompt, "x" * 1000)
    path = place.transcript(session)
    lines = path.read_bytes().splitlines(keepends=True)
    with path.open("rb+") as file:  # as undo takes back what a merge appended, and another program goes on
        file.truncate(sum(map(len, lines[:2])))
        other = b"".join(lines[2:]).replace(b'"two"', b'"own"').replace(json.loads(lines[2])["uuid"].encode(), OTHER)
        file.seek(0, os.SEEK_END)
        file.write(
            other.replace(b"x" * 1000, b"x" * (1000 + grows)).replace(json.loads(lines[3])["uuid"].encode(), LAST)
        )
    session.record_turn("three")
    assert [turn.prompt for turn in session] == ["one", "own", "three"]
    assert is_one_chain(place, session)


# One after the other


def test_a_turn_within_a_turn_is_refused_at_once(place: Place) -> None:
    session = place.begin()
    other = place.again().load_session(session.id)
    open_ = f"this thread already has an open turn of {session.id[:8]}, or an open cell outside of turns"
    began = time.monotonic()
    with session.turn("outer"):
        for act in (
            lambda: session.turn("inner").__enter__(),
            lambda: session.record_turn("inner"),
            lambda: other.begin_cell(type="repl", operation="x"),
            lambda: other.record_turn("inner"),
            lambda: other.complete_cell("cell_aaaaaaaa"),
        ):
            raises(UsageError, open_, act)
    cell = session.begin_cell(type="repl", operation="loose")
    raises(UsageError, open_, lambda: session.record_turn("meanwhile"))
    raises(UsageError, open_, lambda: other.begin_cell(type="repl", operation="x"))
    session.complete_cell(cell)
    assert time.monotonic() - began < 5
    assert other.record_turn("after") == 3
    assert [turn.prompt for turn in session] == ["outer", "repl: loose", "after"]


def test_another_thread_waits_and_gives_up(place: Place) -> None:
    session = place.begin()
    other = place.again().load_session(session.id)
    said = f"another program has a turn of {session.id[:8]} open"
    with ThreadPoolExecutor(1) as pool:
        with session.turn("held"):
            pool.submit(raises, ConflictError, said, lambda: session.turn("now", timeout=0).__enter__()).result()
            pool.submit(raises, ConflictError, said, lambda: other.turn("soon", timeout=0.1).__enter__()).result()
            waiting = pool.submit(other.record_turn, "waits")
            time.sleep(0.2)
            assert not waiting.done()
        assert waiting.result() == 2


def test_a_cell_that_another_thread_ends(place: Place) -> None:
    session = place.begin()
    with ThreadPoolExecutor(4) as pool:
        cells = session.begin_cells([Task("repl", f"part {n}") for n in range(4)])
        list(pool.map(lambda cell: session.complete_cell(cell, cell.operation), cells))
    assert [cell.state for cell in session.cells()] == ["done"] * 4
    assert len(session.turns()) == 1


def test_what_another_process_has_open(place: Place) -> None:
    session = place.begin("shared")
    code = """
import sys
from sessgit import Store
session = Store.open().load_session("shared")
with session.turn("theirs"):
    cell = session.begin_cell(type="repl", operation="slow")
    print(cell, flush=True)
    sys.stdin.readline()
    session.complete_cell(cell, 1)
"""
    running = subprocess.Popen(
        [sys.executable, "-c", code], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )  # fmt: skip
    assert running.stdout and running.stdin
    cell = running.stdout.readline().strip()
    assert [(one.id, one.state) for one in session.pending()] == [(cell, "running")]
    said = f"another program has a turn of {session.id[:8]} open"
    raises(ConflictError, said, lambda: session.turn("mine", timeout=0).__enter__())
    raises(ConflictError, said, lambda: session.complete_cell(cell, 2))
    session.store.load_session("shared")  # records what the transcript holds so far
    assert [(one.id, one.state) for one in session.cells()] == [(cell, "running")]
    running.communicate("\n", timeout=30)
    assert running.returncode == 0
    assert [one.state for one in session.cells()] == ["done"]
    done = f"{cell} already has a result"
    raises(ConflictError, done, lambda: session.complete_cell(cell, 2), "A result cannot be overwritten.")
    session.record_turn("next")
    over = f"{cell} is not a cell of the last turn of {session.id[:8]}"
    raises(Exception, over, lambda: session.complete_cell(cell, 2), "A closed turn takes no more results.")


# Children


def child(session: Session, tell: Callable[[object], None]) -> None:
    try:
        cell = session.begin_cell(type="repl", operation="in the child")
        session.complete_cell(cell, os.getpid())
        tell(session.store.load_session(session.id).cells()[-1].operation)
    except BaseException as error:  # told, or the parent would wait for ever
        tell(repr(error))


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_child_of_a_process_that_has_the_store_open(place: Place) -> None:
    session = place.begin()
    session.record_turn("before")
    context = multiprocessing.get_context("fork")
    told = context.SimpleQueue()
    children = [context.Process(target=child, args=(session, told.put)) for _ in range(3)]
    held = threading.Event()

    def hold() -> None:
        with place.store.lock:
            held.set()
            time.sleep(0.3)

    holder = threading.Thread(target=hold)  # a lock that nobody in a child would ever let go of
    holder.start()
    held.wait()
    for one in children:
        one.start()
    holder.join()
    assert [told.get() for _ in children] == ["in the child"] * 3
    for one in children:
        one.join()
    assert session.record_turn("after") == 5
    assert [cell.operation for cell in session.cells()] == ["in the child"] * 3


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_child_of_a_turn_leaves_it_alone(place: Place) -> None:
    session = place.begin()
    with session.turn("the parent's") as turn:
        cell = session.begin_cell(type="repl", operation="mine")
        pid = os.fork()
        if not pid:
            status = 1
            try:
                with session.turn("the child's", timeout=0):
                    pass
            except ConflictError:
                try:
                    turn.end()
                except UsageError:
                    status = 0
            finally:
                os._exit(status)
        assert os.waitpid(pid, 0)[1] == 0
        assert session.pending()[0].state == "running"
        session.complete_cell(cell, 1)
    assert turn.number == 1
    assert [one.prompt for one in session] == ["the parent's"]


def test_a_child_that_outlives_its_parent_holds_no_turn(place: Place) -> None:
    session = place.begin("x")
    code = """
import os, sys, time
from sessgit import Store
session = Store.open().load_session("x")
session.begin_cell(type="repl", operation="half")
if os.fork():
    os._exit(0)
print(os.getpid(), flush=True)
os.close(1)
time.sleep(60)
"""
    running = program(code)
    assert running.stdout
    pid = int(running.communicate()[0])
    try:
        assert session.pending()[0].state == "interrupted"
        assert session.record_turn("goes on") == 2
    finally:
        os.kill(pid, signal.SIGKILL)


# Killed

KILLED = """
import random, sys
from sessgit import Outcome, Store, Task
session = Store.open().load_session("killed")
say = lambda *words: (sys.stdout.write(" ".join(map(str, words)) + "\\n"), sys.stdout.flush())
choose = random.Random(int(sys.argv[1]))
while True:
    if choose.random() < 0.3:
        number = session.record_turn("whole", "answer")
        say("turn", number)
    elif choose.random() < 0.5:
        with session.turn("cells"):
            outer = session.begin_cell(type="map_reduce", operation="outer")
            say("begun", outer)
            for step in range(choose.randrange(3)):
                with session.cell("inner", dependencies=[outer]) as cell:
                    cell.result = step
                say("done", cell.id)
            session.complete_cell(outer, "x" * choose.choice((1, 5000)))
            say("done", outer)
    else:
        cells = session.begin_cells([Task("repl", "loose")] * choose.randrange(1, 4))
        say("begun", *cells)
        for cell in cells:
            session.complete_cell(cell, 1)
            say("done", cell)
"""


@pytest.mark.parametrize("round_", range(10))
def test_a_program_that_is_killed(place: Place, round_: int) -> None:
    """Four times in a row, at any moment: what was told as done is there, and what was begun is told as interrupted."""
    session = place.begin("killed")
    done, begun, turns = set[str](), set[str](), 0
    for again in range(4):
        running = Started(KILLED, str(round_ * 100 + again))
        first = running.stdout.readline()
        time.sleep(random.uniform(0, 0.06))
        for line in [first, *running.kill().splitlines()]:
            kind, *names = line.split() or [""]
            done.update(names if kind == "done" else ())
            begun.update(names if kind in ("begun", "done") else ())
            turns = max(turns, int(names[0])) if kind == "turn" else turns
        # A child that it was just starting has its lock until it runs.
        until(lambda: {cell.state for cell in session.pending()} <= {"interrupted"})
        pending = session.pending()
        assert not done & {cell.id for cell in pending}
        reader = place.store.load_session("killed")
        states = {cell.id: cell.state for cell in reader.cells()}
        assert {states[name] for name in done} <= {"done"}
        assert begun <= set(states)
        assert len(reader.turns()) >= turns
        assert {name for name, state in states.items() if state == "interrupted"} == {cell.id for cell in pending}
        if pending and again % 2:
            session.complete_cells({pending[0]: Outcome("late")})
            done.add(pending[0].id)
        session.record_turn("next")
        assert session.pending() == []
        assert {cell.state for cell in session.cells() if cell.id in begun - done} <= {"failed", "done"}
        assert {cell.state for cell in session.cells()} <= {"failed", "done"}
    assert is_one_chain(place, session)
    # Every call has one result right behind its message, as the client sends them.
    waiting, message = list[str](), ""
    for line in place.lines(session):
        content = line["message"]["content"]
        for block in content if isinstance(content, list) else [{}]:
            if block.get("type") == "tool_use":
                assert not waiting or line["message"]["id"] == message
                waiting, message = [*waiting, block["id"]], line["message"]["id"]
            elif block.get("type") == "tool_result":
                waiting.remove(block["tool_use_id"])
            else:
                assert not waiting
    assert not waiting


# Cells of one thread in the turn of another


def test_a_turn_stays_open_for_cells_of_other_threads(place: Place) -> None:
    """Of a session that threads share, one ends its turn while a cell of another one runs in it."""
    session = place.begin()
    with ThreadPoolExecutor(1) as pool:
        with session.turn("first") as turn:
            cell = pool.submit(session.begin_cell, type="repl", operation="slow").result()
            turn.answer("That is all.")
        assert turn.number == 1
        assert [one.state for one in session.pending()] == ["running"]
        said = f"another program has a turn of {session.id[:8]} open"
        raises(ConflictError, said, lambda: session.turn("second", timeout=0.1).__enter__())
        pool.submit(session.complete_cell, cell, "done").result()
        assert session.record_turn("second") == 2
        with session.turn("third"):
            left = pool.submit(session.begin_cell, type="repl", operation="left").result()
    assert [one.state for one in session.pending()] == ["running"]
    session.complete_cell(left, "by another thread")
    assert [(one.operation, one.state, one.turn) for one in session.cells()] == [
        ("slow", "done", 1), ("left", "done", 3),
    ]  # fmt: skip
    assert is_one_chain(place, session)


def test_a_turn_does_not_wait_for_ever_for_cells_outside_of_turns(place: Place) -> None:
    """They overlap all the time; whoever waits for a turn gets one in between."""
    session = place.begin()
    over = threading.Event()

    def overlap() -> None:
        while not over.is_set():
            cell = session.begin_cell(type="repl", operation="outer")
            inner = session.begin_cell(type="repl", operation="inner")
            time.sleep(0.02)
            session.complete_cell(inner)
            session.complete_cell(cell)

    with ThreadPoolExecutor(3) as pool:
        running = [pool.submit(overlap) for _ in range(3)]
        time.sleep(0.1)
        try:
            numbers = [session.record_turn(f"mine {n}") for n in range(3)]
        finally:
            over.set()
        for one in running:
            one.result()
    assert numbers == sorted(set(numbers))
    assert {cell.state for cell in session.cells()} == {"done"}


def test_the_key_of_who_was_first_stays(seal: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who makes a store at the same moment goes on with that one: proofs are made with it at once."""
    made = os.urandom

    def slowly(size: int) -> bytes:
        time.sleep(0.05)
        return made(size)

    def key(_: int) -> bytes:
        stores.create_store(seal / "store")
        return (seal / "store" / "key").read_bytes()

    monkeypatch.setattr(os, "urandom", slowly)
    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(key, range(4)))) == 1
