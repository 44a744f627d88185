"""What a browser makes of a page: its elements with their attributes, and the text between them."""

from dataclasses import dataclass
from html.parser import HTMLParser


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
    reader = _Reader()
    reader.feed(html)
    reader.close()
    return reader.found
