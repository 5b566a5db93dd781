"""The scanner of raw JSON lines: positions, nearest keys, and the laws of decode and encode."""

import json
import time
from collections.abc import Iterator

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sessgit.model.json_strings import decode_string, encode_string, escape_text, string_tokens

TEXT = st.text(st.characters(codec="utf-8") | st.sampled_from('\\"\x00\x1f\x7f\u2028\ud800\udc00/🙂'))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner),
    max_leaves=20,
)


def dumped(value: object, *, spaced: bool, ascii_only: bool) -> bytes:
    separators = (" , ", " : ") if spaced else (",", ":")
    return json.dumps(value, separators=separators, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")


def strings_of(value: object, key: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, list):
        for item in value:
            yield from strings_of(item, key)
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from strings_of(item, name)


def found(raw: bytes, **options: int) -> list[tuple[str, str | None]]:
    tokens = string_tokens(raw, **options)
    return [(token.key, decode_string(raw[token.start : token.end])) for token in tokens if not token.is_key]


@given(JSON, st.booleans())
def test_finds_what_a_parser_finds(value: object, spaced: bool) -> None:
    raw = dumped(value, spaced=spaced, ascii_only=True)
    assert found(raw) == list(strings_of(json.loads(raw)))


@given(JSON, st.integers(0, 12))
def test_a_minimum_only_leaves_out_short_tokens(value: object, least: int) -> None:
    raw = dumped(value, spaced=False, ascii_only=True)
    kept = [token for token in string_tokens(raw) if token.end - token.start >= least]
    assert list(string_tokens(raw, min_length=least)) == kept


@given(st.binary(max_size=60) | st.text('"\\:,{}[] a', max_size=60).map(str.encode))
def test_any_bytes_are_survived(raw: bytes) -> None:
    for token in string_tokens(raw):
        assert raw[token.start] == raw[token.end - 1] == ord('"')


def test_keys_are_marked_and_arrays_inherit() -> None:
    raw = b'{"a": [["x", {"b" : "y"}, "z"]], "c\\u0064\\"": "w", "\\\\": {"": "v"}}'
    assert [(raw[t.start : t.end], t.key, t.is_key) for t in string_tokens(raw)] == [
        (b'"a"', "a", True),
        (b'"x"', "a", False),
        (b'"b"', "b", True),
        (b'"y"', "b", False),
        (b'"z"', "a", False),
        (b'"c\\u0064\\""', 'cd"', True),
        (b'"w"', 'cd"', False),
        (b'"\\\\"', "\\", True),
        (b'""', "", True),
        (b'"v"', "", False),
    ]


def test_a_string_alone() -> None:
    assert found(b' "alone" ') == [("", "alone")]


def test_deep_nesting_needs_no_stack() -> None:
    depth = 100_000
    raw = b'{"k":' + b"[" * depth + b'"deep"' + b"]" * depth + b"}"
    assert found(raw) == [("k", "deep")]


@pytest.mark.parametrize("line", [b'"' + b'\\"' * 500_000 + b'"', b'"' + b"\\\\" * 500_000 + b'"', b'"a",' * 200_000])
def test_a_hostile_line_takes_linear_time(line: bytes) -> None:
    begun = time.process_time()
    assert sum(1 for _ in string_tokens(line, min_length=1000)) <= 1
    assert time.process_time() - begun < 1


@pytest.mark.parametrize(
    ("text", "token"),
    [
        ("a/b", b'"a/b"'),
        ('"\\', b'"\\"\\\\"'),
        ("\b\t\n\f\r", b'"\\b\\t\\n\\f\\r"'),
        ("\x00\x0b\x1f\x7f", b'"\\u0000\\u000b\\u001f\x7f"'),
        ("é\u2028🙂", '"é\u2028🙂"'.encode()),
        ("\ud800x\udfff", b'"\\ud800x\\udfff"'),
        ("\ud83d\ude42", '"🙂"'.encode()),
        ("\n\ud83d\ude42\ud800", '"\\n🙂\\ud800"'.encode()),
    ],
)
def test_encode_writes_what_the_client_writes(text: str, token: bytes) -> None:
    assert encode_string(text) == token


@given(st.text(st.characters(codec="utf-8") | st.sampled_from('\\"\x00\x1f\n\t')))
@example("".join(map(chr, range(0x100))))
def test_a_text_in_utf_8_is_escaped_as_json_does_it(text: str) -> None:
    every = json.dumps(text, ensure_ascii=False)[1:-1]
    assert escape_text(text.encode()) == every.encode()
    # A newline that was left is found by splitting: no other escape has one in it.
    assert escape_text(text.encode(), but=b"\n").split(b"\n") == [
        escape_text(each.encode()) for each in text.split("\n")
    ]


@given(TEXT)
def test_decode_undoes_encode(text: str) -> None:
    joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    assert decode_string(encode_string(text)) == joined


@given(TEXT)
def test_encode_is_the_one_form_of_a_text(text: str) -> None:
    ours = encode_string(text)
    again = decode_string(ours)
    assert again is not None
    assert encode_string(again) == ours
    assert decode_string(json.dumps(again).encode()) == again


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b'"',
        b"1",
        b'"a',
        b'a"',
        b' "a"',
        b'"a" ',
        b'"\xff"',
        b'"\xed\xa0\x80"',
        b'"\\x"',
        b'"a"b"',
        b'"\n"',
        b"null",
    ],
)
def test_decode_refuses_what_is_no_string_token(raw: bytes) -> None:
    assert decode_string(raw) is None


def test_decode_keeps_lone_surrogates() -> None:
    assert decode_string(b'"\\ud800"') == "\ud800"
