"""The blocks that pages are made of: headings, labelled fields, paragraphs and tables that fit the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from sessgit.cli import text
from sessgit.cli.invocation import Invocation
from sessgit.model import canonical
from sessgit.model.conversation.session import Session
from sessgit.model.frozen import frozen
from sessgit.store.index import Branch

if TYPE_CHECKING:
    from sessgit.history.log import SideBranch
    from sessgit.store.ancestry import ForkPlace

Row = Sequence[str]


def title(state: Session, limit: int = 200) -> str:
    """Return what a conversation is called, on one line."""
    return text.clean(state.display_title, limit)


def ago(cli: Invocation, time: str) -> str:
    """Return how long ago an RFC 3339 time was: `2h ago`."""
    return text.ago(canonical.seconds(time), cli.now)


def heading(cli: Invocation, address: str, title: str, *facts: str) -> Iterator[str]:
    """Yield an address with a title or ``""``, then further facts, folded into as many lines as they need."""
    called = f"{address}  {title}" if title else address
    indent = " " * min(text.width(address) + 2, cli.width // 3)
    lines = text.fold([called, *facts], cli.width, "  ·  ", indent)
    yield cli.paint("yellow", address) + cli.paint("bold", lines[0][len(address) :])
    yield from lines[1:]


def session_heading(cli: Invocation, branch: Branch, *facts: str) -> Iterator[str]:
    """Yield the heading of a page about a conversation: its id, its title, and facts."""
    return heading(cli, cli.ident(branch.name), title(branch.state), *facts)


def side_branch_phrase(side: SideBranch, where: str = "") -> str:
    """`3 turns left behind by a rewind, 2 of them merged`; `where` follows what kind of turns they are."""
    kind = "left behind by a rewind" if side.rewound else "in another version"
    phrase = f"{text.counted(side.count, 'turn')} {kind}{where}"
    if not side.merged:
        return phrase
    return f"{phrase}, {side.merged} of them merged" if side.open else f"{phrase}, merged"


def fork_place(cli: Invocation, place: ForkPlace) -> str:
    """Return the address at which a fork left another conversation."""
    return f"{text.clean(cli.ident(place.branch), 80)}@{text.clean(place.at)}"


def band(cli: Invocation, words: str) -> str:
    """Return a line across the page with words in it."""
    words = f"═══ {text.cut(words, cli.width - 8)} "
    return cli.paint("dim", words + "═" * (cli.width - text.width(words)))


def paragraph(cli: Invocation, words: str, style: str = "", indent: int = 0) -> Iterator[str]:
    """Yield a text wrapped at the terminal's width."""
    for line in text.wrapped(words, cli.width - indent):
        yield " " * indent + cli.paint(style, line)


def field(
    cli: Invocation, label: str, parts: Iterable[str], *, width: int = 0, style: str = "", between: str = "  ·  "
) -> Iterator[str]:
    """Yield a label in at least so many columns, and behind it the parts that are not empty; long ones are wrapped."""
    label = cli.paint(style, label.ljust(width))
    columns = cli.width - text.width(label)
    lines: list[str] = []
    for part in filter(None, parts):
        joined = f"{lines[-1]}{between}{part}" if lines else part
        if lines and text.width(joined) <= columns:
            lines[-1] = joined
        else:
            lines += text.wrapped(part, columns)
    return text.hanging_indent(label, lines)


@frozen
class Column:
    """How a column of a table looks: its style, whether texts are right-aligned, and whether long ones are paths, which
    are cut at their start.

    If a line would be too long, columns with `least` are cut to no fewer columns than that, and then the ones that are
    `optional` are left out, the last one first.
    """

    style: str = ""
    right: bool = False
    is_path: bool = False
    least: int | None = None
    optional: bool = False

    def cell(self, cli: Invocation, words: str, columns: int) -> str:
        """Return the text in exactly so many columns."""
        words = (text.cut_start if self.is_path else text.cut)(words, columns)
        filling, painted = " " * (columns - text.width(words)), cli.paint(self.style, words)
        return filling + painted if self.right else painted + filling


def table(cli: Invocation, columns: Sequence[Column], rows: Sequence[Row], indent: int = 0) -> Iterator[str]:
    """Yield a line for each row, with columns as wide as their widest texts; those that are empty are left out."""
    needed = [max((text.width(row[place]) for row in rows), default=0) for place in range(len(columns))]
    widths = fit_widths(columns, needed, cli.width - indent)
    for row in rows:
        cells = zip(columns, row, widths, strict=True)
        shown = (column.cell(cli, words, width) for column, words, width in cells if width)
        yield " " * indent + "  ".join(shown)


def fit_widths(columns: Sequence[Column], needed: Sequence[int], room: int) -> list[int]:
    """Return the widths of columns that fit into the room with two spaces between them; 0 for those left out.

    The widest columns are cut first. If nothing else helps, they are cut to one column.
    """
    widths, least = list(needed), list(needed)
    flexible = [place for place, column in enumerate(columns) if column.least is not None and needed[place]]
    for place in flexible:
        least[place] = min(columns[place].least or 1, needed[place])
    optional = [place for place, column in enumerate(columns) if column.optional]
    while optional and _line_width(least) > room:
        place = optional.pop()
        widths[place] = least[place] = 0
    if _line_width(least) > room:
        least = [min(width, 1) for width in least]
    for _ in range(_line_width(widths) - room):
        if wide := [place for place in flexible if widths[place] > least[place]]:
            widths[max(wide, key=widths.__getitem__)] -= 1
    return widths


def _line_width(widths: Sequence[int]) -> int:
    return sum(width + 2 for width in widths if width) - 2
