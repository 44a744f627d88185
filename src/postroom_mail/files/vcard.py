"""Contact cards (RFC 6350 and older versions) as lines of name and value."""

import quopri
import re
from collections.abc import Iterator

from postroom_mail.mime.charset import decode
from postroom_mail.reading.content_lines import ContentLine, content_lines, unescaped

START = b"BEGIN:VCARD"
MAX_VALUE_CHARS = 5_000
LABELS = {
    "FN": "Name",
    "NICKNAME": "Nickname",
    "ORG": "Organization",
    "TITLE": "Title",
    "ROLE": "Role",
    "EMAIL": "Email",
    "TEL": "Phone",
    "ADR": "Address",
    "URL": "Web",
    "IMPP": "Messaging",
    "BDAY": "Birthday",
    "NOTE": "Note",
}
STRUCTURED = frozenset({"N", "ADR", "ORG"})
# Types of a number or address that are worth showing.
KINDS = frozenset({"home", "work", "cell", "fax", "mobile"})

_SOFT_BREAK = re.compile(rb"=\r?\n")
_SEPARATOR = re.compile(r"(?<!\\);")


def is_card(content: bytes) -> bool:
    return content[:100].lstrip(b"\xef\xbb\xbf \t\r\n")[: len(START)].upper() == START


def card_text(content: bytes) -> Iterator[str]:
    """Yield the cards one after another. A card without a formatted name shows the parts of the name."""
    name, lines = "", list[str]()
    if b"QUOTED-PRINTABLE" in content:
        content = _SOFT_BREAK.sub(b"", content)
    for line in content_lines(content):
        if line.name == "N":
            name = " ".join(reversed(_parts(_value(line))[:2])).strip()
        elif line.name in LABELS:
            lines.append(_labelled(line))
        elif line.name == "END":
            if name and not any(written.startswith("Name: ") for written in lines):
                lines.insert(0, f"Name: {name}\n")
            yield "".join(lines) + "\n"
            name, lines = "", []
    yield "".join(lines)


def _labelled(line: ContentLine) -> str:
    value = _value(line)
    shown = ", ".join(filter(None, _parts(value))) if line.name in STRUCTURED else unescaped(value).strip()
    kinds = ", ".join(sorted(KINDS & _kinds(line))) if line.parameters else ""
    label = f"{LABELS[line.name]} ({kinds})" if kinds else LABELS[line.name]
    return f"{label}: {shown.removeprefix('tel:').removeprefix('mailto:')}\n" if shown else ""


def _kinds(line: ContentLine) -> set[str]:
    """Return the kinds: `TYPE=work` of newer cards, a bare `WORK` of older ones."""
    bare = {name.lower() for name, value in line.parameters.items() if not value}
    return bare | set(line.parameters.get("TYPE", "").lower().split(","))


def _value(line: ContentLine) -> str:
    value = line.value[:MAX_VALUE_CHARS]
    encoding = line.parameters.get("ENCODING", "").upper()
    if encoding != "QUOTED-PRINTABLE" and "QUOTED-PRINTABLE" not in line.parameters:
        return value
    return decode(quopri.decodestring(value.encode()), line.parameters.get("CHARSET", ""))


def _parts(value: str) -> list[str]:
    return [" ".join(unescaped(part).split()) for part in _SEPARATOR.split(value)]
