"""What a browser makes of a page: its elements with their attributes, and the text between them."""

from dataclasses import dataclass
from html.parser import HTMLParser

MOST_KNOWN = 20_000
_known: dict[str, "Element"] = {}  # by the tags as they are written: pages have most of theirs in common


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

    def parse_starttag(self, i: int) -> int:
        end = self.check_for_whole_start_tag(i)
        tag = self.rawdata[i:end] if end > i else ""
        if known := _known.get(tag):
            self.found.append(known)
            return end
        before = len(self.found)
        end = super().parse_starttag(i)
        if (
            tag and len(self.found) > before and self.cdata_elem is None
        ):  # else what follows is read otherwise
            if len(_known) >= MOST_KNOWN:
                _known.clear()
            _known[tag] = self.found[-1]
        return end

    def updatepos(self, i: int, j: int) -> int:
        """Nobody asks for the line of an element."""
        return j


def elements_of(html: str) -> list[Element]:
    reader = _Reader()
    reader.feed(html)
    reader.close()
    return reader.found
