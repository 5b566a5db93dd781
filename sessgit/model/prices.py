"""What tokens cost, in US dollars.

The table holds list prices for a million tokens as the vendor's model and pricing pages gave them in October 2026:
input, output, reading from the cache, writing to it for five minutes. Those of Opus 5.5 are also what the client itself
computes in its `cost-state` lines. It does not distinguish what the pages price separately: writing for an hour, a long
prompt, fast mode, batches. Those of OpenAI are the standard prices of its API in May 2026, which its Codex rate card of
that month gives in credits, 25 to the dollar; it asks nothing for writing to the cache. Prices change; `prices` in the
configuration wins over the table, and a model that neither knows has no known cost.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from sessgit.model.conversation.turn import Tokens
from sessgit.model.frozen import frozen
from sessgit.model.stored_fields import Cost


@frozen
class Price:
    """US dollars for a million tokens of each kind."""

    input: Cost
    output: Cost
    cache_read: Cost
    cache_write: Cost


_FAMILIES = (
    ("claude-opus-5-5", Price(4.0, 20.0, 0.2, 5.0)),
    ("claude-opus-4-1", Price(15.0, 75.0, 1.5, 18.75)),
    ("claude-opus-4-0", Price(15.0, 75.0, 1.5, 18.75)),
    ("claude-opus-4-2025", Price(15.0, 75.0, 1.5, 18.75)),
    ("claude-3-opus", Price(15.0, 75.0, 1.5, 18.75)),
    ("claude-opus-", Price(5.0, 25.0, 0.5, 6.25)),
    ("claude-fable-5-1", Price(10.0, 50.0, 0.25, 12.5)),
    ("claude-fable-5", Price(10.0, 50.0, 1.0, 12.5)),
    ("claude-sonnet-5-5", Price(2.0, 10.0, 0.1, 2.5)),
    ("claude-sonnet-5", Price(2.0, 10.0, 0.2, 2.5)),
    ("claude-sonnet-", Price(3.0, 15.0, 0.3, 3.75)),
    ("claude-3-7-sonnet", Price(3.0, 15.0, 0.3, 3.75)),
    ("claude-3-5-sonnet", Price(3.0, 15.0, 0.3, 3.75)),
    ("claude-haiku-5-5", Price(0.1, 0.5, 0.01, 0.125)),
    ("claude-haiku-", Price(1.0, 5.0, 0.1, 1.25)),
    ("claude-3-5-haiku", Price(0.8, 4.0, 0.08, 1.0)),
    ("claude-3-haiku", Price(0.25, 1.25, 0.03, 0.3)),
)
"""The first whose name a model's begins with."""
_GPT_5, _GPT_5_MINI = Price(1.25, 10.0, 0.125, 0.0), Price(0.25, 2.0, 0.025, 0.0)
_GPT_5_2 = Price(1.75, 14.0, 0.175, 0.0)
_NAMED = {
    "gpt-5": _GPT_5, "gpt-5-codex": _GPT_5, "gpt-5-mini": _GPT_5_MINI,
    "gpt-5.1": _GPT_5, "gpt-5.1-codex": _GPT_5, "gpt-5.1-codex-max": _GPT_5, "gpt-5.1-codex-mini": _GPT_5_MINI,
    "gpt-5.2": _GPT_5_2, "gpt-5.2-codex": _GPT_5_2, "gpt-5.3-codex": _GPT_5_2,
    "gpt-5.4": Price(2.5, 15.0, 0.25, 0.0), "gpt-5.4-mini": Price(0.75, 4.5, 0.075, 0.0),
    "gpt-5.5": Price(5.0, 30.0, 0.5, 0.0),
}  # fmt: skip
"""By the whole name without its date: another ending, such as `-pro`, is another price."""
_DATE = re.compile(r"-20\d\d-\d\d-\d\d$")


def model_price(model: str, overrides: Mapping[str, Price]) -> Price | None:
    """Return the price of a model: an override of just that name, of a beginning of it, or the table's; None if
    unknown."""
    if model in overrides:
        return overrides[model]
    own = sorted((name for name in overrides if model.startswith(name)), key=len)
    if own:
        return overrides[own[-1]]
    named = _NAMED.get(_DATE.sub("", model))
    return named or next((price for name, price in _FAMILIES if model.startswith(name)), None)


def token_cost(tokens: Mapping[str, Tokens], overrides: Mapping[str, Price]) -> float | None:
    """Return what the tokens cost, or None where the price of one of the models is not known."""
    total = 0.0
    for model, counts in tokens.items():
        price = model_price(model, overrides)
        if price is None:
            return None
        total += counts.input * price.input + counts.output * price.output
        total += counts.cache_read * price.cache_read + counts.cache_write * price.cache_write
    return total / 1_000_000
