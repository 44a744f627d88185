"""Text of word processor files and slides (OOXML, OpenDocument), in reading order, piece by piece."""

import re
from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct, field
from msgspec.structs import replace

from postroom_mail.files.archive import Archive, End, Start, XmlEvent
from postroom_mail.files.extraction import MAX_CONTENT_BYTES
from postroom_mail.files.outcome import Encrypted, ReadInside

MAX_REPEATED_SPACES = 100
MAX_EMPTY_CELLS = 50
MAX_MANIFEST_BYTES = 1_000_000
OFF = ("0", "false")

_SLIDE = re.compile(r"ppt/slides/slide(\d{1,6})\.xml")


class Grammar(Struct, frozen=True):
    """The elements of a format that carry text, layout, or things a reader does not see."""

    text: frozenset[str]
    cells: frozenset[str]
    rows: frozenset[str]
    skipped: frozenset[str]
    is_spreadsheet: bool = False


OOXML = Grammar(
    text=frozenset({"t"}),
    cells=frozenset({"tc"}),
    rows=frozenset({"tr"}),
    skipped=frozenset({"Fallback", "del", "moveFrom", "pPr"}),
)
OPEN_DOCUMENT = Grammar(
    text=frozenset({"p", "h"}),
    cells=frozenset({"table-cell", "covered-table-cell"}),
    rows=frozenset({"table-row"}),
    skipped=frozenset({"annotation", "tracked-changes", "hidden-text", "hidden-paragraph", "notes", "forms"}),
)
PARAGRAPHS = frozenset({"p", "h"})
BREAKS = {"br": "\n", "cr": "\n", "line-break": "\n", "tab": "\t", "noBreakHyphen": "-"}


def is_word_document(archive: Archive) -> bool:
    return "word/document.xml" in archive


def is_presentation(archive: Archive) -> bool:
    return "ppt/presentation.xml" in archive


def is_open_document(archive: Archive) -> bool:
    return "content.xml" in archive and "mimetype" in archive


def word_text(archive: Archive, read_inside: ReadInside) -> Iterator[str]:
    def embedded(relation: str) -> Iterator[str]:
        member = targets.get(relation, "")
        yield from read_inside("", member, archive.content(member, MAX_CONTENT_BYTES))
        yield "\n"

    targets = relation_targets(archive, "word/_rels/document.xml.rels", "word")
    yield from flow(archive.events("word/document.xml"), OOXML, embedded)
    for part in ("word/footnotes.xml", "word/endnotes.xml"):
        yield from flow(archive.events(part), OOXML)


def relation_targets(archive: Archive, member: str, folder: str) -> dict[str, str]:
    """Return the members that a part refers to, by reference id."""
    return {
        relation.get("Id", ""): target[1:] if target.startswith("/") else f"{folder}/{target}"
        for relation in archive.elements(member, "Relationship")
        if (target := relation.get("Target", "")) and relation.get("TargetMode") != "External"
    }


def presentation_text(archive: Archive) -> Iterator[str]:
    slides = (match for name in archive.members if (match := _SLIDE.fullmatch(name)))
    for slide in sorted(slides, key=lambda match: int(match[1])):
        yield from flow(archive.events(slide.group()), OOXML)
        yield "\n"


def open_document_text(archive: Archive) -> Iterator[str]:
    # Not read as XML: older programs give the manifest a document type, which XML parsers refuse.
    manifest = archive.content("META-INF/manifest.xml", MAX_MANIFEST_BYTES)
    if b"encryption-data" in manifest.replace(b"\0", b""):
        raise Encrypted
    kind = archive.content("mimetype", 100)
    grammar = replace(OPEN_DOCUMENT, is_spreadsheet=b"spreadsheet" in kind)
    yield from flow(archive.events("content.xml"), grammar)


def flow(
    events: Iterable[XmlEvent], grammar: Grammar, embedded: Callable[[str], Iterator[str]] | None = None
) -> Iterator[str]:
    """Yield paragraphs as lines; in a table, cells separated by tabs and rows as lines."""
    layout = _Layout(grammar)
    for event in events:
        if embedded and isinstance(event, Start) and event.name == "altChunk" and not layout.skipped:
            yield from embedded(event.attributes.get("id", ""))
        if isinstance(event, Start):
            piece = layout.start(event.name, event.attributes)
        elif isinstance(event, End):
            piece = layout.end(event.name)
        else:
            piece = layout.data(event)
        if piece:
            yield piece


class _Layout(Struct):
    """Tabs, spaces and row ends are written only before the next text."""

    grammar: Grammar
    skipped: list[str] = field(default_factory=list)
    reading: int = 0
    cells: int = 0
    columns: int = 1
    tabs: int = 0
    space: bool = False
    is_hidden_run: bool = False
    is_blank_row: bool = True

    def start(self, name: str, attributes: dict[str, str]) -> str:
        if self.skipped or name in self.grammar.skipped or _is_hidden_slide(name, attributes):
            self.skipped.append(name)
            return ""
        if name == "r":
            self.is_hidden_run = False
        elif name == "vanish":
            self.is_hidden_run = attributes.get("val") not in OFF
        elif name in self.grammar.cells:
            self.cells += 1
            self.columns = _count(attributes.get("number-columns-repeated"))
        self.reading += name in self.grammar.text
        return self._mark(name, attributes)

    def _mark(self, name: str, attributes: dict[str, str]) -> str:
        if name == "table" and self.grammar.is_spreadsheet:
            return f"{attributes.get('name', '')}\n"
        if name == "s" and self.reading:
            return " " * min(_count(attributes.get("c")), MAX_REPEATED_SPACES)
        return self._broken(BREAKS.get(name, ""))

    def end(self, name: str) -> str:
        if self.skipped:
            self.skipped.pop()
            return ""
        self.reading -= name in self.grammar.text
        if name in self.grammar.cells:
            self.cells -= 1
            self.tabs, self.space = min(self.tabs + self.columns, MAX_EMPTY_CELLS), False
        elif name in self.grammar.rows:
            return self._end_of_row()
        return self._broken("\n") if name in PARAGRAPHS else ""

    def _broken(self, mark: str) -> str:
        """Return the break of a line. Inside a table cell it is only a space."""
        if self.cells:
            self.space = self.space or bool(mark)
            return ""
        return mark

    def _end_of_row(self) -> str:
        is_blank, self.is_blank_row, self.tabs = self.is_blank_row, True, 0
        return "" if is_blank else "\n"

    def data(self, text: str) -> str:
        if self.skipped or not self.reading or self.is_hidden_run:
            return ""
        before = "\t" * self.tabs or " " * self.space
        self.tabs, self.space, self.is_blank_row = 0, False, False
        return before + text


def _is_hidden_slide(name: str, attributes: dict[str, str]) -> bool:
    return name == "sld" and attributes.get("show") in OFF


def _count(written: str | None) -> int:
    return int(written) if written and written.isdecimal() and len(written) < 6 else 1
