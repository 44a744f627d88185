"""What a browser makes of a page: its elements with their attributes."""

from dataclasses import dataclass
from functools import lru_cache
from html.parser import HTMLParser
from typing import Literal

TEXT_INSIDE = ("script", "style")  # up to their end, whatever it looks like


@dataclass(frozen=True, slots=True)
class Element:
    name: str
    attributes: tuple[tuple[str, str], ...]  # a name that comes twice is there twice

    def get(self, name: str) -> str:
        return next((value for each, value in self.attributes if each == name), "")


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[Element] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append(Element(tag, tuple((name, value or "") for name, value in attrs)))


def elements_of(html: str) -> list[Element]:
    """Tag by tag, as pages have most of theirs in common; if one does not end before the next, as a whole."""
    tags = [piece.rpartition(">")[0] for piece in html.split("<")[1:]]
    if not tags:  # a part of a page that shows nothing now
        return []
    read = [_read_tag(tag) for tag in tags]
    found = [element for element in read if isinstance(element, Element)]
    is_empty = all(
        following == f"/{element.name}"
        for element, following in zip(read, [*tags[1:], ""], strict=True)
        if isinstance(element, Element) and element.name in TEXT_INSIDE
    )
    return found if None not in read and is_empty else _read_whole(html)


def _read_whole(html: str) -> list[Element]:
    reader = _Reader()
    reader.feed(html)
    reader.close()
    return reader.found


@lru_cache(20_000)
def _read_tag(written: str) -> Element | Literal["end"] | None:
    """What stands between a `<` and the last `>` before the next one; None if that is no whole tag."""
    if written.lower() == "!doctype html" or (written.startswith("/") and written[1:].isalnum()):
        return "end"
    found = _read_whole(f"<{written}>") if written[:1].isalpha() else []
    return found[0] if len(found) == 1 else None
