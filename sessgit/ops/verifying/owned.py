"""What stands in the agent's own files, against what is recorded: proofs of lines that were redacted, and which turn a
subagent belongs to."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from sessgit.agents.claude import cells
from sessgit.agents.claude.beside import subagents
from sessgit.agents.claude.lines import Line, parse
from sessgit.agents.claude.reader import Reader, opened
from sessgit.agents.claude.writing.transcript import parsed
from sessgit.errors import SessgitError
from sessgit.model import words
from sessgit.model.conversation.message import Message
from sessgit.model.finding import Finding
from sessgit.ops.files.laying import own_commits
from sessgit.ops.verifying.turns import Where
from sessgit.store import layout
from sessgit.store.recorder import cursor as cursors
from sessgit.store.secrets import cleaning
from sessgit.store.store import Store, join_lines


def check(store: Store, session: str, tips: Mapping[str, str]) -> Iterator[Finding]:
    """What is recorded otherwise than the agent has it; nothing where its file is gone, or is another one."""
    with suppress(SessgitError):  # what cannot be read was told where it was met
        yield from _proofs(store, session, tips)
        yield from _agents(store, session, tips[session])


def _proofs(store: Store, session: str, tips: Mapping[str, str]) -> Iterator[Finding]:
    """The proofs of lines that the file still has as they were: redacted they are what is stored."""
    known = cursors.load(store.beside, session)
    commits = {commit: message for tip in tips.values() for commit, message in own_commits(store, session, tip)}
    proved = [one for one in commits.values() if one.get("Original-HMAC") and known and one.file == known.file]
    if known is None or not proved:
        return
    path, redact = Path(known.path), cleaning.line(store.beside, store.state(tips[session]).rules)
    with opened(path) as file:
        if not cursors.fits(known, path, file.file, file.inode, file.size):
            return
        wrong = sum(not _is_proof(store, Reader(file, 0, redact), message) for message in proved)
    if wrong:
        many = "the proof of a commit is" if wrong == 1 else f"the proofs of {words.counted(wrong, 'commit')} are"
        what = f"{many} not what its file and this store's key give: another key made them, or they are wrong"
        yield Where(session).found("note", "proof", what)


def _is_proof(store: Store, reader: Reader, message: Message) -> bool:
    """Whether a commit proves the lines that stand in the file at its places; also where other lines stand there."""
    lines = [line for extent in message.extents for line in reader.again(extent)]
    is_stored = hashlib.sha256(join_lines(line.raw for line in lines)).hexdigest() == message.get("Lines-SHA256")
    if not is_stored or not any(line.secrets for line in lines):
        return True
    return store.hmac(line.written + b"\n" for line in lines) == message.get("Original-HMAC")


def _agents(store: Store, session: str, tip: str) -> Iterator[Finding]:
    """The files of subagents stand with the turn whose prompt they name, or with a later one where they came later."""
    begun: dict[str, tuple[int, str, str, str]] = {}
    for number in range(1, store.state(tip).turns + 1):
        entry = store.folder(tip, number).get(layout.SUBAGENTS)
        for name, (oid, _) in store.repo.tree(entry[0]).items() if entry else ():
            data = store.repo.blob(oid)
            prompt = (parse(data.partition(b"\n")[0]) or {}).get("promptId")
            if name.endswith(".jsonl") and isinstance(prompt, str) and not subagents.goes_on(data):
                begun[oid] = number, name, prompt, _latest(parsed(data.split(b"\n")))
    if not begun:
        return
    turns: dict[str, int] = {}
    ends: dict[int, str] = {}
    for number in range(1, store.state(tip).turns + 1):
        stored = store.lines(tip, number)
        body = parsed(stored.body)
        ends[number] = _latest(body)
        for line in (*parsed(stored.before), *body):
            turns.setdefault(line.text("promptId"), number)
    for number, name, prompt, latest in begun.values():
        own = turns.get(prompt, number) if prompt else number
        # What a subagent said while its turn ran was there when the turn was recorded.
        if own > number or (own < number and "" < latest <= ends[own]):
            what = f"{layout.SUBAGENTS}/{name} stands with it, and is of a prompt of turn {own}"
            yield Where(session, number).found("note", "subagent", what)


def _latest(lines: Iterable[Line]) -> str:
    return max(map(cells.time_of, lines), default="")
