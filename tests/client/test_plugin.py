"""The plugin in the real client, also where nothing of sessgit but the plugin is there."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from world import World

pytestmark = pytest.mark.client

HOOKS = Path(__file__).parents[2] / "hooks"
TIMES = 3
"""Whether the client wrote before the hook had exited is a matter of chance."""


def plugin(world: World) -> list[str]:
    """The options that give the client the plugin, copied out of the checkout."""
    folder = world.home / "plugin"
    shutil.copytree(HOOKS, folder)
    return ["--plugin-dir", str(folder)]


@pytest.mark.parametrize("left", ["nothing", "the stub alone", "the store, and recording is off"])
def test_a_plugin_without_the_rest_never_costs_an_answer(world: World, left: str) -> None:
    extra, env = plugin(world), {}
    store = world.home / ".claude" / "session-store"
    if left != "nothing":
        store.mkdir(parents=True)
        shutil.copy(HOOKS / "hook", store)
    if left.startswith("the store"):
        (store / "spool").mkdir()
        env = {"SESSGIT_OFF": "1"}
    long = "x" * 100_000  # more than a pipe holds, so that the client is still writing when a hook exits
    for prompt in ["hello", *[f"say {long}"] * TIMES]:
        done = world.run(prompt, extra=extra, env=env)
        assert (done.returncode, done.answer != "") == (0, True)
