"""Sections of an email for mail clients, by the numbers of its parts (RFC 3501 section 6.4.5)."""

from msgspec import Struct

from postroom_mail.mime.headers import MAX_HEADER_BYTES as MAX_HEADER_BYTES
from postroom_mail.mime.parts import BodyPart as BodyPart
from postroom_mail.mime.parts import scan as scan


def find(root: BodyPart, path: tuple[int, ...]) -> BodyPart | None:
    """Find by its part numbers (RFC 3501 section 6.4.5)."""
    node, is_mail = root, True
    for number in path:
        inside = node if is_mail else node.message
        if node.children and not is_mail:
            inside = node
        if inside is None:
            return None
        if inside.children:
            if number > len(inside.children):
                return None
            node = inside.children[number - 1]
        elif number == 1:
            node = inside
        else:
            return None
        is_mail = False
    return node


def span(root: BodyPart, path: tuple[int, ...], kind: str) -> tuple[int, int] | None:
    """Start and end of a section; None if there is none."""
    part = find(root, path)
    if part is None:
        return None
    if kind == "MIME":
        return part.header_start, part.body_start
    if not kind:
        return (part.body_start, part.end) if path else (0, part.end)
    mail = part.message if path else part
    if mail is None:
        return None
    return (mail.body_start, mail.end) if kind == "TEXT" else (mail.header_start, mail.body_start)


class StructureCache(Struct):
    """Caches the last email: programs fetch its parts one after the other."""

    key: str = ""
    root: BodyPart | None = None
