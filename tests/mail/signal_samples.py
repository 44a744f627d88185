r"""The labelled mails below samples/signals: flagged ones by the rule they must show, harmless ones by kind.

In them, `\u{200b}` is a character by its number and `\base64{words}` the words in that encoding.
"""

import base64
import codecs
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

from msgspec import Struct

from postroom_mail.html.text import html_to_text
from postroom_mail.screening.examine import Subject

FOLDER = Path(__file__).parent / "samples" / "signals"

_SPLIT = re.compile(r"^== ", re.MULTILINE)
_ENCODED = re.compile(r"\\(\w+)\{([^{}]*)\}")


class Sample(Struct, frozen=True):
    kind: str
    language: str
    subject: Subject

    @property
    def label(self) -> str:
        return f"{self.kind} {self.language}: {self.subject.subject[:40]}"


def flagged() -> list[Sample]:
    return list(_read("flagged.txt"))


def harmless() -> list[Sample]:
    return list(_read("harmless.txt"))


def blind_flagged() -> list[Sample]:
    return list(_read("blind_flagged.txt"))


def blind_harmless() -> list[Sample]:
    return list(_read("blind_harmless.txt"))


def fraud() -> list[Sample]:
    return list(_lines("fraud.txt"))


def near_fraud() -> list[Sample]:
    return list(_lines("fraud_near.txt"))


def _lines(name: str) -> Iterator[Sample]:
    for line in (FOLDER / name).read_text("utf-8").splitlines():
        if not line.startswith("#"):
            kind, language, text = line.split(" | ", 2)
            yield Sample(kind, language, Subject(subject="Hello", body_text=text))


class Attack(Struct, frozen=True):
    """A line of a file of attacks; every second one of a kind was kept from tuning, but for those that were
    blind once."""

    kind: str
    language: str
    subject: Subject
    is_held_out: bool


def attacks() -> list[Attack]:
    return list(_attacks("attacks.txt"))


def blind_attacks() -> list[Attack]:
    return list(_attacks("attacks_blind.txt"))


def attacks_in_other_words() -> list[Attack]:
    return list(_attacks("attacks_other_words.txt"))


def kept_in_other_words() -> list[Attack]:
    return [each for each in attacks_in_other_words() if each.is_held_out]


def _attacks(name: str) -> Iterator[Attack]:
    seen: dict[tuple[str, bool], int] = {}
    may_be_held_out = True
    for line in (FOLDER / name).read_text("utf-8").splitlines():
        may_be_held_out &= not line.startswith("# All below")
        if not line or line.startswith("#"):
            continue
        kind, language, text = line.split(" | ", 2)
        key = (kind, language == "en")
        seen[key] = seen.get(key, 0) + 1
        subject = Subject(subject="Hello", body_text=text.replace("\\n", "\n"))
        yield Attack(kind, language, subject, may_be_held_out and seen[key] % 2 == 0)


def _read(name: str) -> Iterator[Sample]:
    _, *records = _SPLIT.split((FOLDER / name).read_text())
    for record in records:
        head, _, body = record.partition("\n\n")
        labels, *fields = head.split("\n")
        kind, language = labels.split()
        yield Sample(kind, language, _subject(dict(field.split(": ", 1) for field in fields), _decoded(body)))


def _subject(fields: dict[str, str], body: str) -> Subject:
    is_html = fields.get("Type") == "html"
    return Subject(
        from_addr=fields.get("From", "Sender <sender@somewhere.example>"),
        subject=_decoded(fields["Subject"]),
        body_text=_decoded(fields.get("Text", "")) or (html_to_text(body) if is_html else body.strip()),
        body_html=body if is_html else "",
        attachment_names=tuple(fields["File"].split(", ")) if "File" in fields else (),
        attachment_texts=(_decoded(fields["Content"]),) if "Content" in fields else (),
        dmarc=fields.get("Dmarc", "pass"),
        known=tuple(fields["Known"].split("; ")) if "Known" in fields else (),
    )


def _decoded(text: str) -> str:
    return _ENCODED.sub(lambda found: _ENCODERS[found[1]](found[2]), text)


def _bits(text: str) -> str:
    return "".join(f"{letter:08b}" for letter in text.encode()).replace("0", "\u200b").replace("1", "\u200c")


def _selectors(text: str) -> str:
    return "".join(chr(0xFE00 + byte if byte < 16 else 0xE0100 + byte - 16) for byte in text.encode())


def _shifted(text: str, letters: str, first: int) -> str:
    """The letters of a range in the form that begins at another place."""
    start, end = letters[0], letters[1]
    return "".join(
        chr(first + ord(letter) - ord(start)) if start <= letter <= end else letter for letter in text
    )


_ENCODERS: dict[str, Callable[[str], str]] = {
    "u": lambda text: chr(int(text, 16)),
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64url": lambda text: base64.urlsafe_b64encode(text.encode()).decode().rstrip("="),
    "wrapped64": lambda text: base64.encodebytes(text.encode()).decode(),
    "hex": lambda text: text.encode().hex(),
    "hexpairs": lambda text: text.encode().hex(" "),
    "rot13": lambda text: codecs.encode(text, "rot13"),
    "percent": lambda text: "".join(f"%{byte:02X}" for byte in text.encode()),
    "quoted": quote,
    "references": lambda text: "".join(f"&#{ord(letter)};" for letter in text),
    "escapes": lambda text: "".join(f"\\u{ord(letter):04x}" for letter in text),
    "reversed": lambda text: text[::-1],
    "tags": lambda text: "".join(chr(0xE0000 + ord(letter)) for letter in text),
    "bits": _bits,
    "selectors": _selectors,
    "split": "\u200b".join,
    "wide": lambda text: _shifted(text, "!~", 0xFF01),
    "bold": lambda text: _shifted(text, "az", 0x1D41A),
}
