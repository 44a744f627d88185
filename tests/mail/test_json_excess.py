"""How many values JSON has and how deep it nests, counted without decoding it."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from postroom_mail.mime import parsing_cost
from postroom_mail.mime.parsing_cost import CHUNK_BYTES, MAX_JSON_DEPTH, MAX_JSON_VALUES, find_json_excess
from tests.samples import samples

texts = st.text() | st.text(st.sampled_from('"\\[]{},:ab\n')) | st.text("\\", max_size=9)
trees = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inside: st.lists(inside, min_size=1, max_size=5) | st.dictionaries(texts, inside, min_size=1),
    max_leaves=30,
)


def count(value: Any) -> int:
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(count, inside))


def depth(value: Any) -> int:
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return (1 if isinstance(value, dict | list) else 0) + max(map(depth, inside), default=0)


@given(trees, st.integers(1, 40), st.booleans())
def test_values_and_depth_are_counted_as_a_decoder_counts_them(tree: Any, chunk: int, is_ascii: bool) -> None:
    written = json.dumps(tree, ensure_ascii=is_ascii).encode("utf-8", "surrogatepass")
    before = parsing_cost.CHUNK_BYTES
    parsing_cost.CHUNK_BYTES = chunk  # strings and escapes are cut anywhere
    scan = parsing_cost._JsonScan()
    try:
        found = scan.find_excess(written)
    finally:
        parsing_cost.CHUNK_BYTES = before
    assert (found is not None) == (depth(tree) > MAX_JSON_DEPTH)
    if found is None:
        assert (scan._values, scan._depth) == (count(tree), 0)


def test_the_limits_are_met_exactly() -> None:
    most = [0] * (MAX_JSON_VALUES - 1)
    assert find_json_excess(json.dumps(most).encode()) is None
    assert find_json_excess(json.dumps([*most, 0]).encode()) == "has more than 20000 values"
    assert find_json_excess(b"[" * MAX_JSON_DEPTH + b"]" * MAX_JSON_DEPTH) is None
    assert find_json_excess(b'{"a":' * (MAX_JSON_DEPTH + 1)) == "is nested more than 32 levels deep"


@samples(
    "raw",
    [
        b'{"body": "%s"}' % (b"one, [two], {three}, " * 200_000),
        b'{"body": "%s"}' % (b'\\"' * CHUNK_BYTES * 3),
        b'{"body": "a%s"}' % (b"\\\\" * CHUNK_BYTES * 3),
        b"[" + b" " * CHUNK_BYTES * 9 + b"]",
        b"[%s]" % b",".join([b'{"a": ["b"]}'] * 5_000),
    ],
)
def test_long_texts_and_many_short_lists_are_no_excess(raw: bytes) -> None:
    assert find_json_excess(raw) is None
    json.loads(raw)


@samples(
    "raw",
    [
        b"[" + b"1," * 2_000_000,
        b'{"a":{' + b'"k":"v",' * 500_000,
        b'"' * 4_000_000,
        b"[],[]," * 500_000,
        b"[" * 200_000,
        b'["%s",' % (b"x" * (CHUNK_BYTES - 3)) + b"[" * 33,
    ],
)
def test_hostile_shapes_are_found_wherever_they_stand(raw: bytes) -> None:
    assert find_json_excess(raw) is not None


def test_closing_brackets_that_nothing_opened_are_left_to_the_decoder() -> None:
    assert find_json_excess(b"]" * 10_000_000) is None
