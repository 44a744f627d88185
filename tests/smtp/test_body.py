"""The wire form of a mail, checked against a slow and plain reading of the same rules."""

import itertools
import re

from hypothesis import given
from hypothesis import strategies as st

from postroom.smtp.dialogue.body import Body

PIECES = st.sampled_from([b"\r", b"\n", b".", b"\0", b"a", b"\r\n", b"\r\n.", b"\r\n.\r\n", b"\xff", b"text"])
WIRE = st.lists(PIECES, max_size=40).map(b"".join)


def read_plainly(wire: bytes) -> tuple[bytes, bytes | None]:
    content, end, rest = (b"\r\n" + wire).partition(b"\r\n.\r\n")
    if not end:
        return b"", None
    lines = (content + b"\r\n").split(b"\r\n")
    unstuffed = b"\r\n".join(line[1:] if line.startswith(b".") else line for line in lines)[2:]
    return re.sub(rb"\r\n|\r|\n", b"\r\n", unstuffed.replace(b"\0", b"")), rest


def read_in_pieces(wire: bytes, cuts: list[int]) -> tuple[bytes, bytes | None]:
    body, content = Body(), b""
    edges = [0, *sorted(cut % (len(wire) + 1) for cut in cuts), len(wire)]
    for start, end in itertools.pairwise(edges):
        piece, rest = body.feed(wire[start:end])
        content += piece
        if rest is not None:
            return content, rest + wire[end:]
    return content, None


@given(WIRE, st.lists(st.integers(0, 200), max_size=8))
def test_any_cut_of_the_wire_gives_what_the_plain_reading_gives(wire: bytes, cuts: list[int]) -> None:
    wire += b"\r\n.\r\nQUIT\r\n"
    assert read_in_pieces(wire, cuts) == read_plainly(wire)


@given(WIRE)
def test_one_byte_at_a_time_gives_what_the_plain_reading_gives(wire: bytes) -> None:
    wire += b"\r\n.\r\n"
    assert read_in_pieces(wire, list(range(len(wire)))) == read_plainly(wire)


@given(WIRE)
def test_stored_bytes_have_only_crlf_and_no_nul(wire: bytes) -> None:
    content, _ = Body().feed(wire + b"\r\n.\r\n")
    assert b"\0" not in content
    assert b"\r" not in content.replace(b"\r\n", b"")
    assert b"\n" not in content.replace(b"\r\n", b"")
    assert content == b"" or content.endswith(b"\r\n")


def test_a_long_line_in_small_pieces_is_read_whole() -> None:
    body, content = Body(), bytearray()
    for _ in range(20_000):
        content += body.feed(b"ab")[0]
    piece, rest = body.feed(b"\r\n.\r\n")
    assert bytes(content) + piece == b"ab" * 20_000 + b"\r\n"
    assert rest == b""


def test_discarding_still_finds_the_end() -> None:
    body = Body()
    body.feed(b"a" * 100)
    body.discard_rest()
    assert body.feed(b"b" * 100 + b"\r\n.\r") == (b"", None)
    assert body.feed(b"\nQUIT\r\n") == (b"", b"QUIT\r\n")
