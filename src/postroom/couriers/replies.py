"""SMTP replies as values: read from incoming lines within limits, and safe to show."""

import re

from msgspec import Struct

_MAX_LINES = 128  # RFC 5321 section 4.2.1 sets no bound
_MAX_LINE_BYTES = 1000  # RFC 5321 section 4.5.3.1.5 allows 512
_MAX_SHOWN_CHARACTERS = 500  # of a reply in events, lists and reports
_LINE = re.compile(rb"([2-5][0-9]{2})(?:([ -])(.*))?", re.DOTALL)
_ENHANCED = re.compile(r"([245])\.([0-9]{1,3})\.([0-9]{1,3})(?![0-9.])")
_WHITE = re.compile(r"\s+")


class BadReply(Exception):
    """The server sent something that is no SMTP reply."""


class Reply(Struct, frozen=True):
    code: int
    lines: tuple[str, ...]

    @property
    def is_accepting(self) -> bool:
        return self.code < 300

    @property
    def is_refusing(self) -> bool:
        return self.code >= 400

    @property
    def is_permanent(self) -> bool:
        """Return whether a retry would be refused again."""
        return self.code >= 500

    @property
    def enhanced(self) -> str:
        """The status of RFC 3463 when its class agrees with the code, else ""."""
        match = _ENHANCED.match(self.lines[0])
        return match[0] if match is not None and match[1] == str(self.code)[0] else ""

    @property
    def text(self) -> str:
        """On one line and short enough to store."""
        return _WHITE.sub(" ", " ".join(self.lines)).strip()[:_MAX_SHOWN_CHARACTERS]


class ReplyLines:
    """Collects the lines of one reply after another."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def add(self, line: bytes) -> Reply | None:
        """Returns the reply that ends with this line, if any (RFC 5321 section 4.2.1).

        The code of its last line counts.
        """
        match = _LINE.fullmatch(line)
        if match is None:
            raise BadReply("sent something that is not an SMTP reply")
        self._lines.append(_printable(match[3] or b""))
        if match[2] != b"-":
            lines, self._lines = tuple(self._lines), []
            return Reply(int(match[1]), lines)
        if len(self._lines) == _MAX_LINES:
            raise BadReply("sent a reply without end")
        return None


def _printable(raw: bytes) -> str:
    text = raw[:_MAX_LINE_BYTES].decode("utf-8", "replace")
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else " " for character in text)
