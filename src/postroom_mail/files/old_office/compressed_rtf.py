"""Rich text in msg files of Outlook, compressed by references into a window of 4 kB (MS-OXRTFCP)."""

import struct

MAX_UNPACKED_BYTES = 4_000_000
PACKED, PLAIN = 0x75465A4C, 0x414C454D
WINDOW = 4096
# The initial content of the window, as the format prescribes.
START = (
    b"{\\rtf1\\ansi\\mac\\deff0\\deftab720{\\fonttbl;}{\\f0\\fnil \\froman \\fswiss \\fmodern \\fscript "
    b"\\fdecor MS Sans SerifSymbolArialTimes New RomanCourier{\\colortbl\\red0\\green0\\blue0\r\n\\par "
    b"\\pard\\plain\\f0\\fs20\\b\\i\\u\\tab\\tx"
)


def unpacked_rtf(content: bytes) -> bytes:
    if len(content) < 16:
        return b""
    (kind,) = struct.unpack_from("<I", content, 8)
    if kind == PLAIN:
        return content[16:]
    return _unpacked(content[16:]) if kind == PACKED else b""


def _unpacked(packed: bytes) -> bytes:
    out = bytearray(START)
    place = 0
    while place < len(packed) and len(out) < MAX_UNPACKED_BYTES:
        flags = packed[place]
        place += 1
        for bit in range(8):
            if not flags >> bit & 1:
                out += packed[place : place + 1]
                place += 1
            elif place + 2 > len(packed) or not _repeat(out, *packed[place : place + 2]):
                return bytes(out[len(START) :])
            else:
                place += 2
    return bytes(out[len(START) :])


def _repeat(out: bytearray, high: int, low: int) -> bool:
    """Repeats bytes from a position in the window; False at the end mark."""
    where, length = high << 4 | low >> 4, (low & 0x0F) + 2
    now = len(out) % WINDOW
    if where == now:
        return False
    back = (now - where) % WINDOW
    for _ in range(length):
        out.append(out[-back] if back <= len(out) else 0x20)
    return True
