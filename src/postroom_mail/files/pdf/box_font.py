"""A TrueType font of 340 bytes in which every character is the same box, as large as an ideograph."""

import struct

EM = 1_000
LEFT, BOTTOM, RIGHT, TOP = 60, -60, 940, 820
EVERY_CHARACTER = (0x20, 0x3FFFF)


def box_font() -> bytes:
    """Return the font. Glyph 0 is empty; glyph 1 is the box, and stands for every character."""
    tables = _tables()
    start = 12 + 16 * len(tables)
    directory, contents = struct.pack(">IHHHH", 0x10000, len(tables), 64, 2, 16 * len(tables) - 64), b""
    for name, table in sorted(tables.items()):
        # Checksums are 0: FreeType does not look at them.
        directory += name + struct.pack(">III", 0, start + len(contents), len(table))
        contents += table + bytes(-len(table) % 4)
    return directory + contents


def _tables() -> dict[bytes, bytes]:
    bounds = (LEFT, BOTTOM, RIGHT, TOP)
    wide, high = RIGHT - LEFT, TOP - BOTTOM
    corners = struct.pack(">8h", LEFT, 0, wide, 0, BOTTOM, high, 0, -high)  # each relative to the one before
    glyph = struct.pack(">5hHH4B", 1, *bounds, 3, 0, 1, 1, 1, 1) + corners
    many_to_one = struct.pack(">HHIII3I", 13, 0, 28, 0, 1, *EVERY_CHARACTER, 1)
    return {
        b"cmap": struct.pack(">HHHHI", 0, 1, 3, 10, 12) + many_to_one,
        b"glyf": glyph,
        b"head": struct.pack(
            ">IIIIHHqq4hHHhhh", 0x10000, 0x10000, 0, 0x5F0F3CF5, 0, EM, 0, 0, *bounds, 0, 8, 2, 0, 0
        ),
        b"hhea": struct.pack(">I3hH11hH", 0x10000, 880, -120, 0, EM, LEFT, LEFT, RIGHT, *(0,) * 8, 2),
        b"hmtx": struct.pack(">HhHh", EM, LEFT, EM, LEFT),
        b"loca": struct.pack(">3H", 0, 0, len(glyph) // 2),
        b"maxp": struct.pack(">I14H", 0x10000, 2, 4, 1, 0, 0, 1, *(0,) * 8),
    }
