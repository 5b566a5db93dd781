"""Version control for conversations with coding agents.

For programs: `from sessgit import Store`. What the library offers is loaded when it is first asked for.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing itself would be loaded with every recorder
if TYPE_CHECKING:
    from sessgit.api.replaying import Replayed as Replayed
    from sessgit.api.session import Session as Session
    from sessgit.api.store import Store as Store
    from sessgit.api.values import Cell as Cell
    from sessgit.api.values import ImportedSession as ImportedSession
    from sessgit.api.values import Merge as Merge
    from sessgit.api.values import SessionImport as SessionImport
    from sessgit.api.values import Summary as Summary
    from sessgit.api.values import Turn as Turn
    from sessgit.errors import SessgitError as SessgitError
    from sessgit.model.foreign_session import ForeignSession as ForeignSession
    from sessgit.model.program_input import GivenTurn, Metadata, Outcome, Reason, Saying, Step, Task, ToolCall

__version__ = "0.2.0"

__all__ = [
    "Cell",
    "ForeignSession",
    "GivenTurn",
    "ImportedSession",
    "Merge",
    "Metadata",
    "Outcome",
    "Reason",
    "Replayed",
    "Saying",
    "SessgitError",
    "Session",
    "SessionImport",
    "Step",
    "Store",
    "Summary",
    "Task",
    "ToolCall",
    "Turn",
    "__version__",
]  # fmt: skip

_PLACES = {
    "sessgit.api.session": ("Session",),
    "sessgit.api.store": ("Store",),
    "sessgit.api.replaying": ("Replayed",),
    "sessgit.api.values": ("Cell", "ImportedSession", "Merge", "SessionImport", "Summary", "Turn"),
    "sessgit.errors": ("SessgitError",),
    "sessgit.model.foreign_session": ("ForeignSession",),
    "sessgit.model.program_input": ("GivenTurn", "Metadata", "Outcome", "Reason", "Saying", "Step", "Task", "ToolCall"),
}


def __getattr__(name: str) -> object:
    for place, names in _PLACES.items():
        if name in names:
            from importlib import import_module

            return getattr(import_module(place), name)
    raise AttributeError(f"module 'sessgit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
