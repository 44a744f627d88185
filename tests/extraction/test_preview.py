"""Previews: small pictures of PDFs, JPEGs, PNGs and GIFs, and nothing but None for what is hostile."""

import random
import struct
import zlib

import pytest

from postroom.extraction.formats.preview import PNG_MARK, _chunk, _chunks, _pdf, preview
from postroom.extraction.pool import ExtractionPool
from tests.samples import samples


def png(
    colour: int, width: int, height: int, pixel: bytes, palette: bytes = b"", interlace: int = 0
) -> bytes:
    rows = b"".join(b"\x00" + pixel * width for _ in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, interlace)
    colours = _chunk(b"PLTE", palette) if palette else b""
    return (
        PNG_MARK
        + _chunk(b"IHDR", head)
        + colours
        + _chunk(b"IDAT", zlib.compress(rows))
        + _chunk(b"IEND", b"")
    )


def gif(width: int, rows: list[int], *, is_interlaced: bool = False) -> bytes:
    """Each row of one colour, with a comment before it all; packed as plainly as it may be."""
    palette = bytes((0, 0, 0, 250, 240, 30, 1, 2, 3, 9, 9, 9))
    pairs = [number for number in rows for _ in range(width // 2)]
    bits = "".join(f"{code:03b}"[::-1] for number in pairs for code in (4, number, number)) + "101"
    data = bytes(int(bits[at : at + 8][::-1], 2) for at in range(0, len(bits), 8))
    pieces = [data[at : at + 255] for at in range(0, len(data), 255)]
    blocks = b"".join(bytes((len(piece),)) + piece for piece in pieces)
    head = b"GIF89a" + struct.pack("<HHBBB", width, len(rows), 0x81, 0, 0) + palette
    frame = struct.pack("<BHHHHB", 0x2C, 0, 0, width, len(rows), 0x40 if is_interlaced else 0)
    return head + b"\x21\xfe\x05words\x00" + frame + b"\x02" + blocks + b"\x00;"


def looked_at(picture: bytes | None) -> tuple[int, int, tuple[int, ...]]:
    """Its width, its height and the colour in its middle."""
    assert picture is not None
    chunks = dict(_chunks(picture))
    width, height, depth, colour = struct.unpack(">IIBB", chunks[b"IHDR"][:10])
    assert (depth, colour) == (8, 2)
    rows = zlib.decompress(chunks[b"IDAT"])
    place = (height // 2) * (width * 3 + 1) + 1 + (width // 2) * 3
    return width, height, tuple(rows[place : place + 3])


@samples(
    ("content", "wanted"),
    [
        (png(2, 1600, 400, bytes((200, 10, 30))), (800, 200, (200, 10, 30))),
        (png(0, 100, 50, b"\x63"), (100, 50, (99, 99, 99))),
        (png(6, 30, 300, bytes((10, 200, 30, 128))), (30, 300, (10, 200, 30))),
        (png(4, 300, 300, bytes((77, 0))), (300, 300, (77, 77, 77))),
        (gif(40, [1] * 20), (40, 20, (250, 240, 30))),
        # Of twenty rows the one in the middle is the eighth that is written.
        (gif(40, [1] * 7 + [2] + [1] * 12, is_interlaced=True), (40, 20, (1, 2, 3))),
        (png(3, 9, 9, b"\x01", bytes((0, 0, 0, 1, 2, 250))), (9, 9, (1, 2, 250))),
    ],
)
def test_a_picture_is_drawn_small_and_in_its_colours(content: bytes, wanted: object) -> None:
    assert looked_at(preview(content)) == wanted


def test_the_first_page_of_a_pdf_is_drawn() -> None:
    page = _pdf(300, 200, 8, b"/DeviceGray", b"/FlateDecode", zlib.compress(b"\x40" * 60_000))
    assert looked_at(preview(page)) == (600, 400, (64, 64, 64))


@samples(
    "content",
    [
        b"",
        b"plain words",
        b"GIF89a" + bytes(50),
        png(2, 5, 5, b"abc", interlace=1),
        png(9, 5, 5, b"a"),
        png(3, 5, 5, b"a"),
        PNG_MARK + _chunk(b"IHDR", struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)),
        PNG_MARK + b"\xff\xff\xff\xffIHDR",
        b"\xff\xd8\xff" + bytes(100),
        b"\xff\xd8\xff\xc0\x00\x00" * 50,
    ],
)
def test_what_has_no_preview_gives_none(content: bytes) -> None:
    assert preview(content) is None


@pytest.mark.sqlite_alone
async def test_damaged_pictures_cost_their_preview_and_nothing_else() -> None:
    whole = png(2, 64, 64, bytes((1, 2, 3)))
    chance = random.Random(7)
    pool = ExtractionPool()
    try:
        for _ in range(20):
            damaged = bytearray(whole)
            for _ in range(5):
                damaged[chance.randrange(len(damaged))] = chance.randrange(256)
            picture = await pool.preview(bytes(damaged), 60)
            assert picture is None or picture.startswith(PNG_MARK)
        assert looked_at(await pool.preview(whole, 60)) == (64, 64, (1, 2, 3))
        assert (await pool.extract("text/plain", "a.txt", b"words", 60)).text == "words"
    finally:
        await pool.close()
