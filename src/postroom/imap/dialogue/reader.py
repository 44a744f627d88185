"""Cuts the bytes of a client into commands; a literal that is too large is refused before it is read."""

import re
from collections.abc import Callable

from msgspec import Struct

from postroom.imap.dialogue.limits import ImapLimits

LITERAL_MARK = (
    b"\0"  # stands for a literal in the text of a command, in which no NUL may be (RFC 3501 section 9)
)
# With a plus the client sends it without waiting (RFC 7888).
_LITERAL = re.compile(rb"\{([0-9]{1,10})(\+?)\}\Z")


class CommandText(Struct, frozen=True):
    """A complete command; each of its literals is a mark in the text. The literal of an email is empty."""

    text: bytes
    literals: tuple[bytes, ...] = ()


class MailPiece(Struct, frozen=True):
    """A piece of the email of APPEND, as it comes: no command holds an email."""

    data: bytes
    is_first: bool


class WantsMore:
    """The client waits for a continuation before it sends a literal."""


class LiteralRefused(Struct, frozen=True):
    """A literal that is too large. `was_sent`: the client sends it without waiting."""

    text: bytes
    was_sent: bool


class LineTooLong:
    """Nothing after this can be read."""


Read = CommandText | MailPiece | WantsMore | LiteralRefused | LineTooLong


class CommandReader:
    """Holds at most one command, of limited length."""

    def __init__(self, limits: ImapLimits, may_bring_mail: Callable[[bytes], bool]) -> None:
        self._limits = limits
        self._may_bring_mail = may_bring_mail
        self._buffer = bytearray()
        self._scanned = 0
        self._text = bytearray()
        self._literals: list[bytes] = []
        self._literal_bytes: int | None = None
        self._mail_bytes: int | None = None  # bytes of the email still to come
        self._is_first_piece = True

    def feed(self, data: bytes) -> None:
        self._buffer += data

    def forget(self) -> bytes:
        """Returns and forgets what came too early, such as before TLS."""
        rest = bytes(self._buffer)
        self._buffer.clear()
        self._scanned = 0
        return rest

    def next(self) -> Read | None:
        """Return None until more arrives."""
        while True:
            if self._mail_bytes is not None:
                return self._piece()
            if not self._take_literal():
                return None
            end = self._buffer.find(b"\n", self._scanned)
            if end == -1:
                self._scanned = len(self._buffer)
                return LineTooLong() if self._length(self._scanned) > self._limits.max_line_bytes else None
            if self._length(end) > self._limits.max_line_bytes:
                return LineTooLong()
            if (read := self._line(self._take(end + 1).rstrip(b"\r\n"))) is not None:
                return read

    def _piece(self) -> MailPiece | None:
        assert self._mail_bytes is not None
        if self._mail_bytes and not self._buffer:
            return None
        piece = MailPiece(self._take(min(self._mail_bytes, len(self._buffer))), self._is_first_piece)
        self._mail_bytes = self._mail_bytes - len(piece.data) or None
        self._is_first_piece = False
        return piece

    def _take_literal(self) -> bool:
        """Return False while a literal is incomplete."""
        if self._literal_bytes is None:
            return True
        if len(self._buffer) < self._literal_bytes:
            return False
        self._literals.append(self._take(self._literal_bytes))
        self._literal_bytes = None
        self._text += LITERAL_MARK
        return True

    def line(self) -> bytes | None:
        """Return a line that is no command: an answer of the client during AUTHENTICATE or IDLE."""
        end = self._buffer.find(b"\n")
        return None if end == -1 else self._take(end + 1).rstrip(b"\r\n")

    @property
    def is_line_too_long(self) -> bool:
        return len(self._buffer) > self._limits.max_line_bytes and b"\n" not in self._buffer

    def _length(self, more: int) -> int:
        return len(self._text) + more

    def _take(self, count: int) -> bytes:
        taken = bytes(self._buffer[:count])
        del self._buffer[:count]
        self._scanned = 0
        return taken

    def _line(self, line: bytes) -> Read | None:
        """Return None if a literal follows that the client sends without waiting."""
        found = _LITERAL.search(line)
        if found is None:
            # A NUL from the client must not pass as a literal mark.
            self._text += line.replace(LITERAL_MARK, b"\x01")
            read = CommandText(bytes(self._text), tuple(self._literals))
            self._reset()
            return read
        self._text += line[: found.start()].replace(LITERAL_MARK, b"\x01")
        size, is_sent = int(found[1]), bool(found[2])
        is_mail = self._may_bring_mail(bytes(self._text))
        if size > self._allowed(is_mail) or len(self._literals) >= self._limits.max_literals:
            text = bytes(self._text)
            self._reset()
            return LiteralRefused(text, is_sent)
        if is_mail:
            self._literals.append(b"")
            self._text += LITERAL_MARK
            self._mail_bytes, self._is_first_piece = size, True
        else:
            self._literal_bytes = size
        return None if is_sent else WantsMore()

    def _allowed(self, is_mail: bool) -> int:
        if is_mail:
            return self._limits.max_mail_bytes
        return self._limits.max_literal_bytes - sum(map(len, self._literals))

    def _reset(self) -> None:
        self._text.clear()
        self._literals.clear()
