"""The tables of the index."""

from __future__ import annotations

from sessgit.store.sqlite import cache_file

HAS_ORIGIN = "instr(message, char(10) || 'Origin: ')"
"""Whether a turn was brought from another conversation; the index of these is used where a question says it so."""

INDEX = cache_file.Schema(
    10,
    ("branches", "turns", "merges", "gists", "touched", "cells"),
    (
        """CREATE TABLE branches(
            name TEXT PRIMARY KEY, tip TEXT NOT NULL, archived INTEGER NOT NULL, session TEXT NOT NULL,
            agent_id TEXT NOT NULL, project TEXT NOT NULL, title TEXT NOT NULL, authored_name TEXT NOT NULL,
            created TEXT NOT NULL, updated TEXT NOT NULL, turns INTEGER NOT NULL, headless INTEGER NOT NULL,
            status TEXT NOT NULL, stage TEXT NOT NULL, labels TEXT NOT NULL, parent TEXT NOT NULL,
            description TEXT NOT NULL, state BLOB NOT NULL
        ) WITHOUT ROWID""",
        """CREATE TABLE turns(
            branch TEXT NOT NULL, turn INTEGER NOT NULL, commits TEXT NOT NULL, prompt TEXT NOT NULL,
            time INTEGER NOT NULL, message TEXT NOT NULL, compacted INTEGER NOT NULL, bytes INTEGER NOT NULL,
            PRIMARY KEY(branch, turn)
        ) WITHOUT ROWID""",
        "CREATE INDEX turns_prompt ON turns(prompt)",
        "CREATE INDEX turns_commit ON turns(substr(commits, -40))",
        f"CREATE INDEX turns_brought ON turns(branch) WHERE {HAS_ORIGIN}",
        "CREATE TABLE merges(branch TEXT PRIMARY KEY) WITHOUT ROWID",
        "CREATE TABLE gists(commit_id TEXT PRIMARY KEY, told TEXT NOT NULL) WITHOUT ROWID",
        """CREATE TABLE touched(
            path TEXT NOT NULL, commit_id TEXT NOT NULL, changed INTEGER NOT NULL, PRIMARY KEY(path, commit_id)
        ) WITHOUT ROWID""",
        """CREATE TABLE cells(
            commit_id TEXT PRIMARY KEY, folder TEXT NOT NULL, cells TEXT NOT NULL, needs TEXT NOT NULL,
            uses TEXT NOT NULL, proof INTEGER NOT NULL
        )""",
    ),
)
"""`branches` has a row for each branch with its state as of its tip, `turns` one for each turn of each branch, `merges`
one for each session into which others were merged that brought no turn, be it that they were taken out again, `gists`
what turns hold, by their last commit, `touched` the files that those read or changed, and `cells` the cells of turns
and what they are about, with a checksum."""
