"""XML from clients, which is hostile: no DTD and no entities, and bounded depth, elements and text."""

from collections.abc import Iterator
from xml.parsers import expat

from msgspec import Struct, field

from postroom.errors import BadRequest

MOST_ELEMENTS = 20_000
DEEPEST = 30
LONGEST_TEXT = 300_000


class XmlElement(Struct):
    """`name` is `{namespace}local`."""

    name: str
    attributes: dict[str, str] = {}
    children: list["XmlElement"] = field(default_factory=list)
    text: str = ""

    def child(self, name: str) -> "XmlElement | None":
        return next((each for each in self.children if each.name == name), None)

    def all(self, name: str) -> Iterator["XmlElement"]:
        return (each for each in self.children if each.name == name)


class _Reader:
    def __init__(self) -> None:
        self.root: XmlElement | None = None
        self._open: list[XmlElement] = []
        self._elements = self._length = 0

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self._elements += 1
        if self._elements > MOST_ELEMENTS or len(self._open) >= DEEPEST:
            raise BadRequest(
                f"The XML has more than {MOST_ELEMENTS} elements, or nests deeper than {DEEPEST}."
            )
        element = XmlElement(_named(name), attributes)
        if self._open:
            self._open[-1].children.append(element)
        else:
            self.root = element
        self._open.append(element)

    def end(self, _name: str) -> None:
        self._open.pop()

    def text(self, data: str) -> None:
        self._length += len(data)
        if self._length > LONGEST_TEXT:
            raise BadRequest(f"The XML has more than {LONGEST_TEXT} characters of text.")
        if self._open:
            self._open[-1].text += data

    def refuse(self, *_given: object) -> None:
        raise BadRequest("The XML has a document type or an entity: leave these out.")


def _named(name: str) -> str:
    namespace, space, local = name.rpartition(" ")
    return f"{{{namespace}}}{local}" if space else f"{{}}{name}"


def read_xml(raw: bytes) -> XmlElement | None:
    """Return the root, or None for an empty body. Raises BadRequest."""
    if not raw.strip():
        return None
    reader = _Reader()
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.text
    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = reader.refuse
    parser.buffer_text = True
    try:
        parser.Parse(raw, True)
    except (expat.ExpatError, UnicodeError, LookupError, ValueError):
        raise BadRequest("The body is not valid XML.") from None
    return reader.root
