"""The tests that drive the real client: `make test-client`, or SESSGIT_TEST_CLIENT=1 pytest tests/client."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from clients import VERSIONS, Client, UnavailableError, install, seal_home
from model_server import ModelServer
from world import World

ENABLE = "SESSGIT_TEST_CLIENT"


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("client") and not os.environ.get(ENABLE):
        pytest.skip("client tests not run: make test-client")


@pytest.fixture(scope="session", params=VERSIONS)
def client(request: pytest.FixtureRequest) -> Client:
    try:
        return install(request.param)
    except UnavailableError as error:
        pytest.skip(f"Claude Code {request.param}: {error}")


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture
def world(client: Client, model: ModelServer, tmp_path: Path) -> Iterator[World]:
    home, project = tmp_path / "home", tmp_path / "project"
    project.mkdir()
    seal_home(home, project)
    (home / ".gitconfig").write_text("[user]\n\tname = Tester\n\temail = tester@example.org\n")
    environ = {"PATH": os.environ["PATH"], "HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1"}
    (project / "README.md").write_text("# A project\n")
    for command in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "Start"]):
        subprocess.run(["git", *command], cwd=project, env=environ, check=True)
    made = World(client, model, home, project)
    yield made
    made.close()
