"""An email whose contents are withheld: same structure and size, and nothing but spaces in its parts.

Mail clients have seen its size and structure before, and neither may change (RFC 3501 section 2.3.1.1).
"""

from postroom_mail.mime.parts import BodyPart, scan

_KEPT = b"\r\n"
_BLANK = bytes(each if each in _KEPT else 0x20 for each in range(256))
_PLAIN = ("", "7bit", "8bit", "quoted-printable")


def withhold(raw: bytes, trace_bytes: int, notice: str) -> bytes:
    """Withhold the content; headers stay.

    `notice` is in the first part of plain text that has room for it.
    """
    root = scan([raw], trace_bytes)
    content = bytearray(raw)
    _blank(content, root.body_start, len(content))
    leaves = _restore(raw, content, root)
    said = notice.encode("ascii", "replace").replace(b"=", b"-")
    for leaf in leaves:
        encoding = leaf.headers.text("content-transfer-encoding").strip().lower()
        if leaf.content_type == "text/plain" and encoding in _PLAIN and _fits(raw, leaf, said):
            content[leaf.body_start : leaf.body_start + len(said)] = said
            break
    return bytes(content)


def _fits(raw: bytes, leaf: BodyPart, said: bytes) -> bool:
    """Return whether a text fits, not across a line end, which stays where it is."""
    line_end = raw.find(b"\r\n", leaf.body_start, leaf.end)
    return len(said) <= (leaf.end if line_end == -1 else line_end) - leaf.body_start


def _blank(content: bytearray, start: int, end: int) -> None:
    content[start:end] = content[start:end].translate(_BLANK)


def _restore(raw: bytes, content: bytearray, part: BodyPart) -> list[BodyPart]:
    """Puts headers and boundaries back. Returns the leaves."""
    leaves, waiting = [], [part]
    while waiting:
        each = waiting.pop()
        content[each.header_start : each.body_start] = raw[each.header_start : each.body_start]
        if each.children:
            _restore_boundaries(raw, content, each)
            waiting += reversed(each.children)
        elif each.message is not None:
            waiting.append(each.message)
        else:
            leaves.append(each)
    return leaves


def _restore_boundaries(raw: bytes, content: bytearray, part: BodyPart) -> None:
    """Restore the lines of the boundary between the children, before and behind them."""
    line = b"--" + part.parameters.get("boundary", "").encode("utf-8", "surrogateescape")
    ends = [part.body_start, *(each.end for each in part.children)]
    starts = [*(each.header_start for each in part.children), part.end]
    for start, end in zip(ends, starts, strict=True):
        found = raw.find(line, start, end)
        while found != -1:
            stop = raw.find(b"\n", found, end)
            stop = end if stop == -1 else stop
            content[found:stop] = raw[found : min(stop, found + len(line) + 2)].ljust(stop - found)
            found = raw.find(line, stop, end)
