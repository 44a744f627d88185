"""What a mail client sees of a message: its structure and the bytes of each part, over IMAP."""

import imaplib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from postroom_mail.mime import transfer_encoding
from tests.imap.live import ok

_LITERAL = re.compile(rb"\{(\d+)\}\r\n")
_ATOM = re.compile(rb"[^\s()\"{]+")
_QUOTED = re.compile(rb'"((?:[^"\\]|\\.)*)"', re.DOTALL)


@dataclass(frozen=True)
class Leaf:
    """A part without parts of its own; an attached message is one leaf."""

    section: str
    content_type: str
    content: bytes  # decoded
    charset: str
    is_alternative: bool  # a client may show another one instead


@dataclass(frozen=True)
class ClientView:
    raw: bytes
    header: bytes
    text: bytes
    leaves: tuple[Leaf, ...]


def read_all(client: imaplib.IMAP4, folder: str) -> list[ClientView]:
    """Return every message of a folder as a mail client gets it."""
    (count,) = ok(client.select(f'"{folder}"', readonly=True))
    return [read(client, number) for number in range(1, int(count) + 1)]


def read(client: imaplib.IMAP4, number: int) -> ClientView:
    raw = _section(client, number, "")
    structure = _structure(client, number)
    leaves = [
        Leaf(section, kind, decoded(_section(client, number, section), encoding), charset, is_choice)
        for section, kind, encoding, charset, is_choice in _leaves(structure, "", False)
    ]
    header, text = _section(client, number, "HEADER"), _section(client, number, "TEXT")
    return ClientView(raw, header, text, tuple(leaves))


def decoded(content: bytes, encoding: str) -> bytes:
    return transfer_encoding.decode(content, encoding).content


def _section(client: imaplib.IMAP4, number: int, section: str) -> bytes:
    answer = ok(client.fetch(str(number), f"(BODY.PEEK[{section}])"))
    found = [part[1] for part in answer if isinstance(part, tuple)]
    if found:
        return bytes(found[0])
    quoted = _QUOTED.search(answer[0])
    return b"" if quoted is None else re.sub(rb"\\(.)", rb"\1", quoted[1])


def _structure(client: imaplib.IMAP4, number: int) -> Any:
    answer = ok(client.fetch(str(number), "(BODYSTRUCTURE)"))
    pieces = [b"\r\n".join(part) if isinstance(part, tuple) else part for part in answer]
    whole = b"".join(piece for piece in pieces if piece)
    tokens = _Tokens(whole[whole.index(b"BODYSTRUCTURE") + len(b"BODYSTRUCTURE") :])
    return tokens.value()


class _Tokens:
    """Reads one value of IMAP's grammar: atoms, strings, literals and lists of them."""

    def __init__(self, data: bytes) -> None:
        self.data, self.position = data, 0

    def value(self) -> Any:
        self._skip_space()
        if self.data.startswith(b"(", self.position):
            return self._list()
        if literal := _LITERAL.match(self.data, self.position):
            start = literal.end()
            self.position = start + int(literal[1])
            return self.data[start : self.position]
        if quoted := _QUOTED.match(self.data, self.position):
            self.position = quoted.end()
            return re.sub(rb"\\(.)", rb"\1", quoted[1])
        atom = _ATOM.match(self.data, self.position)
        assert atom is not None, self.data[self.position : self.position + 50]
        self.position = atom.end()
        return None if atom[0].upper() == b"NIL" else atom[0]

    def _list(self) -> list[Any]:
        found: list[Any] = []
        self.position += 1
        while True:
            self._skip_space()
            if self.data.startswith(b")", self.position):
                self.position += 1
                return found
            found.append(self.value())

    def _skip_space(self) -> None:
        while self.data.startswith((b" ", b"\r", b"\n"), self.position):
            self.position += 1


def _leaves(structure: list[Any], prefix: str, is_choice: bool) -> Iterator[tuple[str, str, str, str, bool]]:
    """Section number, type, encoding and charset of each leaf, and whether it is an alternative.

    RFC 3501 section 6.4.5 numbers the parts.
    """
    if not isinstance(structure[0], list):
        kind = b"/".join(structure[:2]).decode().lower()
        yield prefix or "1", kind, (structure[5] or b"").decode().lower(), _charset(structure[2]), is_choice
        return
    children = list(takewhile(lambda each: isinstance(each, list), structure))
    is_choice = is_choice or structure[len(children)].lower() == b"alternative"
    for number, child in enumerate(children, 1):
        yield from _leaves(child, f"{prefix}.{number}" if prefix else str(number), is_choice)


def _charset(parameters: list[bytes] | None) -> str:
    named = dict(zip(parameters[::2], parameters[1::2], strict=True)) if parameters else {}
    return named.get(b"CHARSET", b"").decode().lower()
