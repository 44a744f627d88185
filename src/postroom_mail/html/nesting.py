"""HTML as a stream of properly nested pieces."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Generic, Protocol, TypeVar

from postroom_mail.html.markup import Close, Open, Piece, names, tokens

MAX_REOPENED = 8
MOST_ALIKE = 3

FORMATTING = names("a b big code em font i nobr s small strike strong tt u")
CELLS = ("td", "th", "caption", "table", "template", "object", "button")
TABLE = ("table", "template")
BARRIERS: dict[str, tuple[str, ...]] = {
    "li": ("ul", "ol", *CELLS),
    "dd": ("dl", *CELLS),
    "dt": ("dl", *CELLS),
    **dict.fromkeys(("td", "th", "tr", "tbody", "thead", "tfoot", "caption"), TABLE),
    **dict.fromkeys(("table", "template", "body", "html"), ("template",)),
}


def nested(html: str) -> Iterator[Piece]:
    """Yield the pieces in proper nesting: each Open that can hold content has its Close, in order."""
    pieces: list[Piece] = []

    def opened(tag: Open) -> Open:
        pieces.append(tag)
        return tag

    def closed(tag: Open) -> Open:
        pieces.append(Close(tag.name))
        return tag

    nesting = Nesting(opened, closed)
    for tag, text in tokens(html).pairs:
        if isinstance(tag, Open):
            nesting.open(tag)
        else:
            nesting.close(tag.name)
        if text:
            pieces.append(text)
        yield from pieces
        pieces.clear()
    nesting.close_all()
    yield from pieces


class Named(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def key(self) -> object: ...


Element = TypeVar("Element", bound=Named)


class Nesting(Generic[Element]):
    """The open elements, with an index by name, so that no query walks down the stack.

    Calls back for every start tag, which gives an element, and for the end of every element that can have
    content, which gives the start tag back.
    """

    def __init__(self, opened: Callable[[Open], Element], closed: Callable[[Element], Open]) -> None:
        self._opened = opened
        self._closed = closed
        self._stack: list[Element] = []
        self._places: defaultdict[str, list[int]] = defaultdict(list)

    def open(self, tag: Open) -> None:
        for name in tag.closes:
            if self._places[name]:
                self._close_if_open(name)
        element = self._opened(tag)
        if not tag.is_void:
            self.push(element)

    def close(self, name: str) -> None:
        stack = self._stack
        if stack and stack[-1].name == name:
            self._closed(self.pop())
        elif name == "br":
            self._opened(Open("br", {}))
        else:
            self._close_if_open(name)

    def close_all(self) -> None:
        while self._stack:
            self._closed(self.pop())

    def _close_if_open(self, name: str) -> None:
        place = self._last(name)
        if place < 0 or self._is_behind_barrier(name, place):
            return
        survivors: list[Open] = []
        while len(self._stack) > place + 1:
            tag = self._closed(self.pop())
            if tag.name in FORMATTING:
                survivors.append(tag)
        self._closed(self.pop())
        if name not in CELLS and name != "tr":
            self._reopen(survivors)

    def _reopen(self, survivors: list[Open]) -> None:
        """Reopen formatting, which continues after the end of its block, as browsers show it."""
        for tag in reversed(survivors[-MAX_REOPENED:]):
            if not self._is_in_effect(tag):
                self.push(self._opened(tag))

    def _is_in_effect(self, tag: Open) -> bool:
        """Return whether browsers no longer repeat it: it is open too often (HTML section 13.2.4.3).

        Without this, every block of unclosed formatting would nest deeper than the one before it.
        """
        last = self._places[tag.name][-MOST_ALIKE:]
        return len(last) == MOST_ALIKE and all(self._stack[place].key == tag.key for place in last)

    def _is_behind_barrier(self, name: str, place: int) -> bool:
        if place == len(self._stack) - 1:
            return False
        return any(self._last(barrier) > place for barrier in BARRIERS.get(name, CELLS))

    def _last(self, name: str) -> int:
        places = self._places.get(name)
        return places[-1] if places else -1

    def push(self, element: Element) -> None:
        self._places[element.name].append(len(self._stack))
        self._stack.append(element)

    def pop(self) -> Element:
        element = self._stack.pop()
        self._places[element.name].pop()
        return element
