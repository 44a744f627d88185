"""Where HTML leads: its links with their visible text, what it loads, and where its forms go."""

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from postroom_mail.html.markup import Close, Open
from postroom_mail.html.nesting import nested

LABEL_CHARACTERS = 200
ADDRESS_CHARACTERS = 2_000
LOADING = ("src", "background", "poster", "data")

Kind = Literal["link", "picture", "form"]


class LinkTarget(Struct, frozen=True):
    kind: Kind
    url: str  # of any scheme, as it is written
    label: str


def targets(html: str) -> Iterator[LinkTarget]:
    """Yield the targets in order, with repeats."""
    url, label, room = "", "", 0
    for piece in nested(html) if html else ():
        if isinstance(piece, str):
            label, room = label + piece[:room], max(0, room - len(piece))
        elif isinstance(piece, Open):
            if piece.name in ("a", "area") and piece.attributes.get("href"):
                if url:
                    yield _link(url, label)
                url, label, room = piece.attributes["href"], "", LABEL_CHARACTERS
            yield from _loaded(piece)
        elif isinstance(piece, Close) and piece.name == "a" and url:
            yield _link(url, label)
            url, label, room = "", "", 0
    if url:
        yield _link(url, label)


def _link(url: str, label: str) -> LinkTarget:
    return LinkTarget("link", _address(url), " ".join(label.split()))


def _address(written: str) -> str:
    return "".join(written.split())[:ADDRESS_CHARACTERS]


def _loaded(element: Open) -> Iterator[LinkTarget]:
    """Yield what an element loads. Embedded pictures lead nowhere."""
    for name in LOADING:
        url = _address(element.attributes.get(name, ""))
        if url and not url.lower().startswith(("cid:", "data:")):
            yield LinkTarget("picture", url, element.attributes.get("alt", "")[:LABEL_CHARACTERS])
    for name in ("action", "formaction"):
        if url := _address(element.attributes.get(name, "")):
            yield LinkTarget("form", url, "")
