"""Tells open tabs which conversations have changed, whatever process changed them."""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

from sessgit.history.watch import RefPoller, RefState, read_ref_state

_LOOK_SECONDS = 0.1
_KEEPALIVE_SECONDS = 15.0
_MOST_REMEMBERED = 500
"""Changes that a tab can have missed; one that missed more reads everything again."""
GRACE_SECONDS = 60.0
"""Seconds after which the server may exit once the last tab is closed."""
HIDDEN_SECONDS = 150.0
"""The same for a hidden tab, which has no stream and calls once a minute at least, as often as browsers let it."""


class Live:
    """Looks at the refs ten times a second while a tab has a stream open: the modification times of a few folders."""

    def __init__(self, store: Path) -> None:
        self.store = store
        self.count = 0
        self.streams = 0
        self._is_ending = False
        self.alive_until = time.monotonic() + 10 * GRACE_SECONDS
        self._changes: deque[tuple[int, list[str]]] = deque(maxlen=_MOST_REMEMBERED)
        self._changed = asyncio.Event()
        self._poller = RefPoller(store)
        self._known: RefState | None = None

    @property
    def is_idle(self) -> bool:
        """Whether all tabs have been closed for a minute."""
        return not self.streams and time.monotonic() > self.alive_until

    def note_tab(self, seconds: float) -> None:
        """Note that a tab is open, for so many seconds."""
        self.alive_until = time.monotonic() + seconds

    async def follow(self) -> None:
        """Look at the refs without end. A store that cannot be read for a moment is read again."""
        while True:
            await asyncio.sleep(_LOOK_SECONDS if self.streams else 1.0)
            with suppress(OSError):
                await self.look()

    async def look(self) -> None:
        """Notice changes of the refs since the last look; the first one only remembers them."""
        if not await asyncio.to_thread(self._poller.may_have_moved):
            return
        known, new = self._known, await asyncio.to_thread(read_ref_state, self.store)
        self._known = new
        if known is not None and new != known:
            before, after = known.branches, new.branches
            names = {name for name in {*before, *after} if before.get(name) != after.get(name)}
            self.count += 1
            self._changes.append((self.count, sorted(names)))
            self._wake()

    def end(self) -> None:
        """End all streams."""
        self._is_ending = True
        self._wake()

    def _wake(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def stream(self, last: int | None) -> AsyncIterator[str]:
        """Yield server-sent events: the number of each change and the names of the changed branches."""
        at = self.count if last is None else last
        self.streams += 1
        try:
            yield f"id: {self.count}\nevent: ready\ndata: {{}}\n\n" if last is None else ": resumed\n\n"
            while not self._is_ending:
                changed = self._changed
                missed = [one for one in self._changes if one[0] > at]
                if at > self.count or (missed and missed[0][0] > at + 1):
                    at = self.count
                    yield f"id: {at}\nevent: reset\ndata: {{}}\n\n"
                for number, names in missed:
                    at = number
                    yield f"id: {number}\nevent: change\ndata: {json.dumps({'branches': names})}\n\n"
                if not missed:
                    try:
                        await asyncio.wait_for(changed.wait(), _KEEPALIVE_SECONDS)
                    except TimeoutError:
                        yield ": still here\n\n"
        finally:
            self.streams -= 1
            self.note_tab(GRACE_SECONDS)
