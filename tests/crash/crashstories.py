"""What is killed: each story makes a world, and says what runs in it and what the person or the client does next."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass

from crashchild import Job
from crashworld import World
from foreigners import cell, log, put, rlm, went
from plain import run_git
from transcripts import OTHER, SESSION, Talk

THIRD = "5e551011-0000-4000-8000-000000000003"
VALUE = "tiger-Lily/4711+Zebra"
BOTH = ("ls", "--all", "--json"), ("log", SESSION)

Told = Callable[[World], Job]
Next = Callable[[World], None]


@dataclass(frozen=True)
class Story:
    """`make` builds the world and returns the job that is killed; `then` is what happens next.

    Where it is `complete` by then, all is as a job leaves it that nobody killed; else each ref and each file is so, or
    as it was before, and it is complete once the same job has run `again`, which may end with these exit codes. A job
    that makes something `new` makes another one then.
    """

    make: Told
    then: Next
    complete: bool = True
    again: tuple[int, ...] = (0,)
    new: bool = False
    ours: bool = False
    """Whether it is killed at calls on our own files alone: a lock that git leaves in a remote is the remote's."""
    grows: bool = False
    """Whether what is there may also be any step on the way."""
    whole: bool = True
    """Whether git finds nothing wrong before it is complete, either."""
    proof: Next = lambda world: None
    """What must be so at the end, beside all else."""


def _reading(world: World) -> None:
    for words in BOTH:
        world.done(world.cli(*words))


def _event(world: World) -> None:
    world.next_event(Talk(), "SessionEnd")
    world.done(world.cli("ls", "--all"))


def rich(world: World) -> Talk:
    """A conversation with all that lies beside one: a rewind, a subagent, a large result, todos, a title."""
    talk = world.talk().turns("one", "two").rewind(1).turns("other")
    talk.prompt("agents").tool("Task", {"prompt": "look"}, "found").answer("ok").stop_lines().title("A title")
    return talk


def beside(world: World, talk: Talk) -> None:
    folder = world.transcripts / talk.session / "subagents"
    folder.mkdir(parents=True, exist_ok=True)
    line = {"type": "user", "promptId": talk.prompt_id, "uuid": "5ab", "message": {"role": "user", "content": "look"}}
    (folder / "agent-7c2d.jsonl").write_text(json.dumps(line) + "\n")
    todos = world.config / "todos"
    todos.mkdir(exist_ok=True)
    (todos / f"{talk.session}-agent-{talk.session}.json").write_text('[{"content":"x","status":"pending"}]')


def installed(world: World) -> None:
    world.config.mkdir(parents=True, exist_ok=True)
    world.done(world.cli("install"))


def recorded(world: World, *talks: Talk) -> None:
    installed(world)
    for talk in talks or (world.talk().turns("one", "two", "three"), world.talk(OTHER).turns("else")):
        talk.save(world.transcripts)
    world.done(world.cli("import"))


def first_event(world: World) -> Job:
    installed(world)
    talk = rich(world)
    talk.save(world.transcripts)
    beside(world, talk)
    world.event("Stop", talk)
    return world.recorder()


def next_event(world: World) -> Job:
    """Goes on with a branch that a rewind left behind: two names are exchanged."""
    installed(world)
    talk = rich(world)
    talk.save(world.transcripts)
    world.next_event(talk)
    beside(world, talk)
    talk.rewind(2).turns("three").rewind(1).turns("again").rewind(5).turns("five", "and " + "x" * 5000)
    talk.save(world.transcripts)
    world.event("UserPromptSubmit", talk)
    return world.recorder()


def cell_event(world: World) -> Job:
    installed(world)
    world.done(world.cli("config", "record.granularity", "cell"))
    talk = world.talk().prompt("cells").tool("Bash", {"command": "ls"}, "a").tool("Write", {"file_path": "/x"}, "b")
    talk.answer("done").stop_lines()
    talk.save(world.transcripts)
    world.event("Stop", talk)
    return world.recorder()


def fork_event(world: World) -> Job:
    """The first event of a conversation that the client copied from another one, rewinds and all."""
    installed(world)
    talk = rich(world)
    talk.save(world.transcripts)
    world.next_event(talk)
    copy = talk.branch(OTHER).turns("in the branch")
    copy.save(world.transcripts)
    world.event("Stop", copy)
    return world.recorder()


def _fork_event(world: World) -> None:
    world.next_event(Talk(OTHER), "SessionEnd")
    world.done(world.cli("ls", "--all"))


def imported(world: World) -> Job:
    installed(world)
    talk = rich(world)
    talk.save(world.transcripts)
    beside(world, talk)
    talk.branch(OTHER).turns("in the branch").save(world.transcripts)
    world.talk(THIRD).turns("else").save(world.transcripts)
    return world.cli("import")


def _import_again(world: World) -> None:
    world.done(world.cli("import"))


def program(world: World) -> Job:
    recorded(world)
    code = world.root / "program.py"
    code.write_text(
        "from sessgit import Store\n"
        "store = Store.open()\n"
        "session = store.create_session()\n"
        "session.record_turn('one', 'answer')\n"
        "with session.turn('two'):\n"
        "    cell = session.begin_cell(type='repl', operation='peek', args={'a': 1})\n"
        "    session.complete_cell(cell, result=[1, 2])\n"
    )
    return world.program(code)


def _proved(world: World) -> None:
    """Whoever asks brings in what the files hold; what is recorded is what they hold."""
    _listing(world)
    for path in world.transcripts.glob("*.jsonl"):
        world.done(world.cli("log", path.stem))
        world.done(world.cli("restore", path.stem, "--verify"))


def _listing(world: World) -> None:
    world.done(world.cli("ls", "--all"))


def _synced(world: World) -> None:
    world.done(world.cli("push", "hub", SESSION, OTHER))
    _pulled_again(world)


def _pulled_again(world: World) -> None:
    world.done(world.cli("pull", "hub"))


def _cli(*words: str) -> Told:
    def make(world: World) -> Job:
        recorded(world)
        return world.cli(*words)

    return make


def fork_at(world: World) -> Job:
    talk = rich(world)
    beside(world, talk)
    recorded(world, talk)
    return world.cli("fork", SESSION, "--at", "2.1")


def merging(*mode: str) -> Told:
    def make(world: World) -> Job:
        ours = world.talk().turns("one", "two")
        theirs = ours.branch(OTHER).turns("theirs", "theirs again")
        recorded(world, ours.turns("ours"), theirs)
        return world.cli("merge", OTHER, "--into", SESSION, *mode)

    return make


def undone(*words: str) -> Told:
    def make(world: World) -> Job:
        ours = world.talk().turns("one", "two")
        theirs = ours.branch(OTHER).turns("theirs", "theirs again")
        recorded(world, ours.turns("ours"), theirs)
        world.done(world.cli(*words))
        return world.cli("undo")

    return make


def deleted(world: World) -> Job:
    recorded(world, rich(world), world.talk(OTHER).turns("else"))
    return world.cli("delete", SESSION, "--yes")


def archived(world: World) -> Job:
    recorded(world, rich(world), world.talk(OTHER).turns("else"))
    world.done(world.cli("gc"))  # so that the refs are packed
    return world.cli("archive", SESSION)


def unarchived(world: World) -> Job:
    archived(world)
    world.done(world.cli("archive", SESSION))
    return world.cli("unarchive", SESSION)


def repacked(world: World) -> Job:
    """The packs of two imports are packed once more, as a process does it in the background."""
    recorded(world, rich(world))
    recorded(world, world.talk(OTHER).turns("else"), world.talk(THIRD).turns("more"))
    code = world.root / "packer.py"
    code.write_text(
        f"from pathlib import Path\nfrom sessgit.recorder import packer\npacker.main(Path({str(world.store)!r}))\n"
    )
    return world.program(code)


def collected(*words: str) -> Told:
    def make(world: World) -> Job:
        recorded(world, rich(world), world.talk(OTHER).turns("else"), world.talk(THIRD).turns("gone"))
        world.done(world.cli("gc"))
        world.done(world.cli("delete", THIRD, "--yes"))
        world.talk(OTHER).turns("else", "more").save(world.transcripts)
        world.done(world.cli("import"))
        return world.cli("gc", *words, now=0)

    return make


def hub(world: World) -> None:
    hub = world.root / "hub.git"
    subprocess.run(["git", "init", "-q", "--bare", str(hub)], check=True, env=world.env)
    world.done(world.cli("remote", "add", "hub", str(hub)))


def pushed(world: World) -> Job:
    recorded(world, rich(world), world.talk(OTHER).turns("else"))
    hub(world)
    world.done(world.cli("push", "hub", OTHER))
    world.talk(OTHER).turns("else", "more").save(world.transcripts)
    world.done(world.cli("import"))
    return world.cli("push", "hub", SESSION, OTHER)


def pulled(world: World) -> Job:
    """One session is only there, the other one has gone on there."""
    pushed(world)
    world.done(world.cli("push", "hub", SESSION, OTHER))
    store = world.store.rename(world.root / "elsewhere")
    for path in world.transcripts.glob("*.jsonl"):
        path.unlink()
    recorded(world, world.talk(OTHER).turns("else"))
    subprocess.run(["rm", "-rf", str(store)], check=True)
    world.done(world.cli("remote", "add", "hub", str(world.root / "hub.git")))
    return world.cli("pull", "hub")


def synced(world: World) -> Job:
    """One session is only there, one only here, and the third one has gone on in both places."""
    both, here = world.talk(OTHER).turns("else"), world.talk(THIRD).turns("only here")
    recorded(world, rich(world), both)
    hub(world)
    world.done(world.cli("push", "hub", SESSION, OTHER))
    _store_of_another_machine(world)
    world.talk(OTHER).turns("else", "there").save(world.transcripts)
    world.done(world.cli("import"))
    world.done(world.cli("push", "hub", OTHER))
    _store_of_another_machine(world)
    recorded(world, world.talk(OTHER).turns("else", "here"), here)
    world.done(world.cli("config", "sync.include", json.dumps([f"{world.home}/*"])))
    return world.cli("sync", "hub")


def _store_of_another_machine(world: World) -> None:
    """All of this one goes but what is at the remote, and the other one begins with that."""
    subprocess.run(["rm", "-rf", str(world.store)], check=True)
    for path in world.transcripts.glob("*.jsonl"):
        path.unlink()
    installed(world)
    world.done(world.cli("remote", "add", "hub", str(world.root / "hub.git")))
    world.done(world.cli("pull", "hub"))
    world.done(world.cli("restore", "--all-lost"))


def _synced_again(world: World) -> None:
    world.done(world.cli("sync", "hub"))


def purged(world: World) -> Job:
    """A value in turns, in a fork, behind a rewind, in a tag, a name, an archive, an operation, an event and a log."""
    talk = world.talk().turns(f"log in with {VALUE}", "two").rewind(1).turns("other").title(f"about {VALUE}")
    beside(world, talk)
    plain = world.talk(THIRD).turns("plain")
    recorded(world, talk, talk.branch(OTHER).turns("in the branch"), plain)
    world.done(world.cli("tag", f"with-{VALUE.replace('/', '-')}", f"{SESSION}@1"))
    world.done(world.cli("edit", SESSION, "--description", f"with {VALUE}"))
    world.done(world.cli("archive", OTHER))
    world.done(world.cli("gc"))
    world.done(world.cli("edit", SESSION, "--description", "without"))
    (world.store / "log").write_text(f"2026-03-01T10:00:00.000Z 1.0 failed: {VALUE}\n")
    return world.cli("purge", VALUE, "--yes")


def _purged(world: World) -> None:
    """No object holds it, and no file."""
    command = ["git", "-C", str(world.store), "cat-file", "--batch", "--batch-all-objects", "--unordered"]
    assert VALUE.encode() not in subprocess.run(command, check=True, capture_output=True, env=world.env).stdout
    assert VALUE not in run_git(world.store, "for-each-ref")
    for path in world.store.rglob("*"):
        assert not path.is_file() or VALUE.encode() not in path.read_bytes(), path
    assert json.loads(world.done(world.cli("ops", "--json")).said)["operations"][0]["command"] == "purge"


def broken(world: World) -> Talk:
    """A call without its result, and a prompt that hangs on nothing."""
    talk = world.talk().turns("one").prompt("two").call_only("Bash", {"command": "ls"}).turns("three").prompt("four")
    prompt = json.loads(talk.lines[-2]) | {"parentUuid": "ffffffff-0000-4000-8000-000000000000"}
    talk.lines[-2] = json.dumps(prompt, separators=(",", ":")).encode()
    return talk.answer("yes").stop_lines()


def repaired(world: World) -> Job:
    recorded(world, broken(world), world.talk(OTHER).turns("else"))
    return world.cli("repair", SESSION)


def lacking(world: World) -> Job:
    """Objects of a turn are gone, and the client's file has them."""
    recorded(world, world.talk().turns("one", "two", "three"), world.talk(OTHER).turns("else"))
    packs = world.store / "objects" / "pack"
    for pack in packs.glob("*.pack"):
        away = pack.rename(world.root / pack.name)
        pack.with_suffix(".idx").unlink()
        with away.open("rb") as file:
            unpack = ["git", "-C", str(world.store), "unpack-objects", "-q"]
            subprocess.run(unpack, stdin=file, check=True, env=world.env)
        away.unlink()
    for name in (":turns/0000/000002/transcript.jsonl", ":turns/0000/000001"):
        oid = run_git(world.store, "rev-parse", f"{SESSION}{name}").strip()
        (world.store / "objects" / oid[:2] / oid[2:]).unlink()
    return world.cli("repair", SESSION)


def _listed_whole(world: World) -> None:
    _listing(world)
    assert world.done(world.cli("log", OTHER))


def _whole_again(world: World) -> None:
    world.done(world.cli("verify"))


def brought_in(world: World) -> Job:
    """Sessions of two other systems in one folder."""
    recorded(world, world.talk().turns("one"))
    there = world.root / "there"
    folder = rlm(there)
    put(folder / "cells" / "cell_a1b2c3d4.json", cell("cell_a1b2c3d4"))
    log(there, "worker-1", went("input", "do it", 1), went("output", "done", 2))
    return world.cli("import", "--from", "rlm", str(there / "rlm-sessions"))


def picked(*mode: str) -> Told:
    def make(world: World) -> Job:
        merging()(world)
        return world.cli("pick", f"{OTHER}@3", "--into", SESSION, *mode)

    return make


def _only_whole(world: World) -> None:
    """No conversation is left that was begun and does not hold what was brought."""
    for ref, tip in world.picture().items():
        if ref.startswith(("refs/heads/e", "refs/heads/f")):
            said = run_git(world.store, "log", "--format=%B", f"{SESSION}..{tip}")
            assert "Origin: " in said, (ref, said)
    assert not list(world.transcripts.glob("f*.jsonl")) or run_git(world.store, "for-each-ref", "refs/heads/f*")


def restored(world: World) -> Job:
    talk = rich(world)
    beside(world, talk)
    recorded(world, talk)
    (world.transcripts / f"{SESSION}.jsonl").unlink()
    return world.cli("restore", SESSION)


def fresh(world: World) -> Job:
    world.config.mkdir(parents=True)
    (world.config / "settings.json").write_text('{"model": "x"}\n')
    return world.cli("install")


def _installed_again(world: World) -> None:
    world.done(world.cli("install"))


STORIES = {
    "the first event": Story(first_event, _event),
    "an event after rewinds": Story(next_event, _event),
    "an event, cell by cell": Story(cell_event, _event),
    "the first event of a fork": Story(fork_event, _fork_event),
    "import": Story(imported, _import_again),
    "a program": Story(program, _proved, complete=False, new=True, grows=True),
    "fork": Story(_cli("fork", SESSION, "--at", "2"), _reading, complete=False, new=True),
    "fork with files beside": Story(fork_at, _reading, complete=False, new=True),
    "merge": Story(merging(), _proved, complete=False, again=(0, 3), grows=True),
    "merge, graft": Story(merging("--mode", "graft"), _proved, complete=False, again=(0, 3), grows=True),
    "merge into a new one": Story(merging("--new"), _proved, complete=False, new=True, grows=True, proof=_only_whole),
    "pick": Story(picked(), _proved, complete=False, again=(0, 2), grows=True),
    "pick into a new one": Story(picked("--new"), _proved, complete=False, new=True, grows=True, proof=_only_whole),
    "import of another system": Story(brought_in, _listing, complete=False),
    "repair": Story(repaired, _listed_whole, complete=False, new=True, grows=True),
    "repair of objects": Story(lacking, _listed_whole, complete=False, whole=False, proof=_whole_again),
    "purge": Story(purged, _listing, complete=False, proof=_purged),
    "archive": Story(archived, _reading, complete=False, again=(0, 3)),
    "unarchive": Story(unarchived, _reading, complete=False, again=(0, 3)),
    "delete": Story(deleted, _listing, complete=False, again=(0, 4)),
    "undo of a merge": Story(undone("merge", OTHER, "--into", SESSION), _reading, complete=False, again=(0, 4)),
    "undo of an archiving": Story(undone("archive", OTHER), _reading, complete=False, again=(0, 4)),
    "undo of a deletion": Story(undone("delete", OTHER, "--yes"), _listing, complete=False, again=(0, 4)),
    "undo of a pick": Story(undone("pick", f"{OTHER}@3", "--into", SESSION), _reading, complete=False, again=(0, 4)),
    "undo of a rename": Story(undone("rename", SESSION, "a name"), _reading, complete=False, again=(0, 4)),
    "undo of a fork": Story(undone("fork", SESSION, "--at", "2"), _listing, complete=False, again=(0, 4)),
    "rename": Story(_cli("rename", SESSION, "a name"), _reading, complete=False),
    "tag": Story(_cli("tag", "here", SESSION), _reading, complete=False, again=(0, 3)),
    "pad": Story(_cli("pad", "add", "insight", "a thing", "--into", SESSION), _reading, complete=False, new=True),
    "gc": Story(collected(), _reading),
    "packing in the background": Story(repacked, _reading),
    "gc --prune": Story(collected("--prune", "--yes"), _reading),
    "push": Story(pushed, _synced, ours=True),
    "pull": Story(pulled, _pulled_again),
    "sync": Story(synced, _synced_again, ours=True),
    "restore": Story(restored, _reading, complete=False, again=(0, 3)),
    "install": Story(fresh, _installed_again),
}
