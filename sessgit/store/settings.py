"""The store's settings file, `config.toml`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from sessgit.errors import SessgitError, StoreError, UsageError
from sessgit.model.config import Config
from sessgit.store.layout import Beside
from sessgit.store.store import write_private


def load(beside: Beside) -> Config:
    """The settings, or the defaults where there is no file; raises SessgitError where the file says nonsense."""
    document = read(beside)
    if not document:
        return Config()
    # Loaded only where someone changed a setting: it costs as much as the rest of a command.
    from sessgit.model import schema

    return schema.config(document, str(beside.config))


def read(beside: Beside) -> dict[str, Any]:
    """The document as it stands in the file."""
    try:
        text = beside.config.read_text("utf-8")
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise StoreError(f"cannot read {beside.config}: {error}") from error
    import tomllib

    try:
        return tomllib.loads(text)
    except ValueError as error:
        raise SessgitError(
            f"{beside.config} is not TOML: {error}", "Correct the file, or delete it: all settings have defaults."
        ) from error


def change(beside: Beside, key: str, value: object | None) -> None:
    """Sets one dotted key, or takes it out where `value` is None; the rest of the file, comments too, stays."""
    import tomlkit

    from sessgit.model import schema

    text = beside.config.read_text("utf-8") if beside.config.exists() else ""
    document = tomlkit.parse(text)
    *above, last = key.split(".")
    table: Any = document
    for name in above:
        table = table.setdefault(name, tomlkit.table())
    if value is None:
        table.pop(last, None)
    else:
        table[last] = value
    try:
        schema.config(document.unwrap(), str(beside.config))
    except SessgitError as error:
        raise UsageError(str(error), "Nothing was changed: sessgit config shows keys and values.") from error
    write_private(beside.config, tomlkit.dumps(document).encode())


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting by its dotted key; `is_default` says that the file does not name it."""

    key: str
    value: object
    is_default: bool


def flat(config: Config, document: dict[str, Any]) -> list[Setting]:
    """All settings, those of the file and the defaults of the others."""

    def below(values: dict[str, Any], named: Any, above: str) -> list[Setting]:
        out: list[Setting] = []
        for name, value in values.items():
            there = isinstance(named, dict) and name in named
            if isinstance(value, dict):
                out += below(value, named[name] if there else None, f"{above}{name}.")
            else:
                out.append(Setting(f"{above}{name}", value, not there))
        return out

    return below(asdict(config), document, "")
