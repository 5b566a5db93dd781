"""Clones of one project on several machines: they have the same remote."""

from __future__ import annotations

import re

from sessgit.store.project import common_folder

_SECTION = re.compile(r'\s*\[\s*(\w+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\]')
_URL = re.compile(r"(?:\[[^]]*\])?\s*url\s*=\s*\"?([^\s\"#;]+)", re.IGNORECASE)
_WITH_SCHEME = re.compile(r"(?:https?|ssh|git|git\+ssh)://(?:[^/@]*@)?([^/:@]+)(?::\d+)?/(.+)", re.IGNORECASE)
_LIKE_SCP = re.compile(r"(?:[^/:@]+@)?([^/:@]+):(?!//)(.+)")
_LONGEST_CONFIG = 1 << 20


def project_remote(folder: str) -> str:
    """Return the remote of a folder's project, such as `github.com/anna/shop`: `origin`, else the only one; or ``""``.

    git's file is read here, since git itself would take longer than the command.
    """
    repository = common_folder(folder)
    if repository is None:
        return ""
    try:
        with (repository / "config").open(encoding="utf-8", errors="replace") as file:
            urls = _remote_urls(file.read(_LONGEST_CONFIG))
    except (OSError, ValueError):
        return ""
    url = urls.get("origin") or (next(iter(urls.values())) if len(urls) == 1 else "")
    return normalized_url(url)


def normalized_url(url: str) -> str:
    """Return a URL without scheme, user, port and `.git`, or ``""`` for one that names no other machine.

    A password in it is left out with the user.
    """
    match = _WITH_SCHEME.fullmatch(url) or _LIKE_SCP.fullmatch(url)
    if match is None:
        return ""
    path = match[2].strip("/").removesuffix(".git").rstrip("/")
    return f"{match[1].lower()}/{path}" if path else ""


def _remote_urls(config: str) -> dict[str, str]:
    """Return the first URL of each remote."""
    urls, remote = dict[str, str](), ""
    for line in config.split("\n"):
        if section := _SECTION.match(line):
            remote = section[2] or "" if section[1].lower() == "remote" else ""
        if remote and (url := _URL.match(line.strip())):
            urls.setdefault(remote, url[1])
    return urls
