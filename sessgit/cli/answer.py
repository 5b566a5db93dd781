"""Answers some commands of the plugin in the place of the model, if the setting `plugin.answer` is on.

The plugin's hook runs it as `python -m sessgit.cli.answer` when such a prompt is submitted, with the event on standard
input. If it prints nothing, the client goes on as without it.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress

from sessgit import agents, environment
from sessgit.cli import captured
from sessgit.errors import SessgitError
from sessgit.store.layout import StorePaths
from sessgit.store.settings import load_settings


def main() -> None:
    """Print what makes the client show the answer; nothing for another prompt, or whatever goes wrong."""
    with suppress(SessgitError, OSError, ValueError, RecursionError):
        env, event = environment.read(os.environ), json.load(sys.stdin.buffer)
        plugin = agents.client(env.homes).agent.plugin
        question = plugin.question(event) if isinstance(event, dict) else None
        if question is None or not load_settings(StorePaths(env.store)).plugin.answer:
            return
        os.chdir(question.cwd)
        os.environ.update(question.environment)
        sys.stdout.write(plugin.answer(captured.shortened(question.words)))


if __name__ == "__main__":
    main()
