"""What tokens cost."""

from __future__ import annotations

import pytest

from sessgit.model import prices
from sessgit.model.conversation.turn import Tokens
from sessgit.model.prices import Price


def test_the_cost_of_a_conversation_as_the_client_computed_it() -> None:
    tokens = {"claude-opus-5-5": Tokens(132, 391, 24_000, 3_786)}
    assert prices.token_cost(tokens, {}) == pytest.approx(0.032078)


def test_models_add_up_and_an_unknown_one_cannot_be_told() -> None:
    tokens = {"claude-sonnet-4-5-20250929": Tokens(1_000_000), "claude-haiku-4-5-20251001": Tokens(0, 1_000_000)}
    assert prices.token_cost(tokens, {}) == pytest.approx(8.0)
    assert prices.token_cost({**tokens, "gpt-of-nobody": Tokens(1)}, {}) is None
    assert prices.token_cost({}, {}) == 0


@pytest.mark.parametrize("name", ["my-model", "my-"])
def test_an_override_wins_by_its_whole_name_or_its_beginning(name: str) -> None:
    assert prices.token_cost({"my-model": Tokens(500_000)}, {name: Price(4, 0, 0, 0), "m": Price(9, 9, 9, 9)}) == 2.0


def test_the_longest_override_wins() -> None:
    overrides = {"claude-": Price(1, 1, 1, 1), "claude-opus-": Price(2, 2, 2, 2)}
    assert prices.model_price("claude-opus-5-5", overrides) == Price(2, 2, 2, 2)


@pytest.mark.parametrize(
    ("model", "dollars"),
    [
        ("gpt-5.1-codex", 1.25 + 10 + 0.125),
        ("gpt-5.2-2026-01-15", 1.75 + 14 + 0.175),
        ("gpt-5.4-pro", None),
        ("gpt-5.9", None),
        ("gpt-5.2-codex-mini", None),
    ],
)
def test_a_model_of_openai_is_known_by_its_whole_name(model: str, dollars: float | None) -> None:
    used = {model: Tokens(input=1_000_000, output=1_000_000, cache_read=1_000_000)}
    assert prices.token_cost(used, {}) == dollars
