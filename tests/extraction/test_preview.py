"""Previews: small pictures of PDFs, JPEGs, PNGs, GIFs and WebPs, and only None for what is hostile."""

import base64
import random
import struct
import zlib

import pytest

from postroom.inward.extraction_pool import ExtractionPool
from postroom_mail.files.pictures.drawing import PNG_MARK, chunk, page_of_picture
from postroom_mail.files.pictures.png import PASSES, chunks
from postroom_mail.files.pictures.preview import preview
from tests.samples import samples


def png(
    colour: int, width: int, height: int, pixel: bytes, palette: bytes = b"", interlace: int = 0
) -> bytes:
    rows = b"".join(b"\x00" + pixel * width for _ in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, interlace)
    colours = chunk(b"PLTE", palette) if palette else b""
    return (
        PNG_MARK + chunk(b"IHDR", head) + colours + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
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


def interlaced(width: int, height: int, colour: int = 2, depth: int = 8) -> bytes:
    """Each pixel of another colour; the rows of each pass are written as differences to the left."""
    values = {0: 1, 2: 3, 6: 4}[colour]
    rows = b""
    for each in PASSES:
        for y in range(each.y, height, each.down):
            pixels = [pixel(x, y)[:values] for x in range(each.x, width, each.right)]
            if pixels:
                flat = b"".join(bytes(one) for one in pixels)
                before = bytes(values) + flat
                rows += b"\x01" + bytes((a - b) & 255 for a, b in zip(flat, before, strict=False))
    head = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 1)
    return PNG_MARK + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def pixel(x: int, y: int) -> tuple[int, int, int, int]:
    return x * 7 % 256, y * 11 % 256, (x + y) * 5 % 256, 90


def pixels_of(picture: bytes | None) -> list[list[tuple[int, ...]]]:
    assert picture is not None
    found = dict(chunks(picture))
    width, height = struct.unpack(">II", found[b"IHDR"][:8])
    data, wide = zlib.decompress(found[b"IDAT"]), width * 3 + 1
    lines = [data[y * wide + 1 : (y + 1) * wide] for y in range(height)]
    return [[tuple(line[x * 3 : x * 3 + 3]) for x in range(width)] for line in lines]


def looked_at(picture: bytes | None) -> tuple[int, int, tuple[int, ...]]:
    """Its width, its height and the colour in its middle."""
    assert picture is not None
    found = dict(chunks(picture))
    width, height, depth, colour = struct.unpack(">IIBB", found[b"IHDR"][:10])
    assert (depth, colour) == (8, 2)
    rows = zlib.decompress(found[b"IDAT"])
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


@pytest.mark.parametrize(("width", "height"), [(1, 1), (2, 3), (9, 5), (40, 33)])
@pytest.mark.parametrize("colour", [2, 6])
def test_the_passes_of_an_interlaced_png_are_put_between_each_other(
    width: int, height: int, colour: int
) -> None:
    wanted = [[pixel(x, y)[:3] for x in range(width)] for y in range(height)]
    assert pixels_of(preview(interlaced(width, height, colour))) == wanted


def test_a_large_interlaced_png_is_drawn_small() -> None:
    assert looked_at(preview(interlaced(1_000, 20, 0)))[:2] == (800, 16)


WEBPS = {
    "lossy": (
        "UklGRkoAAABXRUJQVlA4ID4AAABQAwCdASooABQAPm02l0ikIyIhJWgAgA2JZwDQvoAAK/fDcAD+8ZWP9CbHtRX//cHH/ZwP+5wP3bb9Aa0AAA==",
        (40, 20, (200, 10, 30)),
    ),
    "lossless": ("UklGRh4AAABXRUJQVlA4TBEAAAAvJ8AEAAdQhSLXo/+BiOh/AAA=", (40, 20, (200, 10, 30))),
    "with alpha": ("UklGRh4AAABXRUJQVlA4TBEAAAAvJ8AEAAdQ5CrUo/+BiOh/AAA=", (40, 20, (10, 200, 30))),
    "wide": ("UklGRiIAAABXRUJQVlA4TBYAAAAvP0YAAAdQgax+/wNAQvj/Xovof+oA", (800, 1, (1, 2, 250))),
}


def webp(name: str) -> bytes:
    return base64.b64decode(WEBPS[name][0])


def moving(frame: bytes) -> bytes:
    """A file of two frames, each with a head of its own."""
    inside = bytes(16) + frame[12:]
    frames = (b"ANMF" + struct.pack("<I", len(inside)) + inside) * 2
    start = b"VP8X\x0a\x00\x00\x00\x02" + bytes(9) + b"ANIM\x06\x00\x00\x00" + bytes(6)
    return b"RIFF" + struct.pack("<I", len(start + frames) + 4) + b"WEBP" + start + frames


@pytest.mark.needs("libwebp")
@pytest.mark.parametrize("name", WEBPS)
def test_a_webp_is_drawn_and_of_a_moving_one_the_first_frame(name: str) -> None:
    width, height, colour = WEBPS[name][1]
    for content in (webp(name), moving(webp(name))):
        found = looked_at(preview(content))
        assert found[:2] == (width, height)
        assert all(abs(one - other) <= 3 for one, other in zip(found[2], colour, strict=True))


def test_the_first_page_of_a_pdf_is_drawn() -> None:
    page = page_of_picture(300, 200, 8, b"/DeviceGray", b"/FlateDecode", zlib.compress(b"\x40" * 60_000))
    assert looked_at(preview(page)) == (600, 400, (64, 64, 64))


@samples(
    "content",
    [
        b"",
        b"plain words",
        b"GIF89a" + bytes(50),
        png(2, 50_000, 50_000, b"", interlace=1),
        b"RIFF\x04\x00\x00\x00WEBP",
        b"RIFF\xff\xff\xff\xffWEBPVP8L\xff\xff\xff\xff" + bytes(50),
        b"RIFF\x30\x00\x00\x00WEBPANMF\x08\x00\x00\x00" + bytes(50),
        webp("lossy")[:-30],
        png(9, 5, 5, b"a"),
        png(3, 5, 5, b"a"),
        PNG_MARK + chunk(b"IHDR", struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)),
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
    pictures = [whole, interlaced(30, 30), webp("lossy"), moving(webp("lossless"))]
    chance = random.Random(7)
    pool = ExtractionPool()
    try:
        for number in range(28):
            damaged = bytearray(pictures[number % len(pictures)])
            for _ in range(5):
                damaged[chance.randrange(len(damaged))] = chance.randrange(256)
            picture = await pool.preview(bytes(damaged), 60)
            assert picture is None or picture.startswith(PNG_MARK)
        assert looked_at(await pool.preview(whole, 60)) == (64, 64, (1, 2, 3))
        assert (await pool.extract("text/plain", "a.txt", b"words", 60)).text == "words"
    finally:
        await pool.close()
