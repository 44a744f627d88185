"""Reads the words of one command, from left to right (RFC 3501 section 9)."""

import re
from collections.abc import Callable
from typing import TypeVar

from postroom.imap.dialogue import names
from postroom.imap.dialogue.reader import LITERAL_MARK, CommandText
from postroom.imap.dialogue.requests import STAR, NumberSet

T = TypeVar("T")
MAX_RANGES = 10_000  # a set of all UIDs of a large folder, with gaps, is that long (RFC 9051 section 9)
_ATOM = re.compile(rb'[^\x00-\x20\x7f(){%*"\\\]]+')
_ASTRING = re.compile(rb'[^\x00-\x20\x7f(){%*"\\]+')
_PATTERN = re.compile(rb'[^\x00-\x20\x7f(){"\\]+')
_FLAG = re.compile(rb'\\?[^\x00-\x20\x7f(){%*"\\\]]+')
_QUOTED = re.compile(rb'"((?:[^"\\\r\n]|\\["\\])*+)"')
_ESCAPED = re.compile(rb'\\(["\\])')
_SET = re.compile(rb"[0-9:*,]+")
_NUMBER = re.compile(rb"[0-9]{1,20}")


class BadCommand(Exception):
    """The command is malformed; the reason is for the program's author."""


class CommandCursor:
    """A position in a command. Each method takes what it names, or raises BadCommand."""

    def __init__(self, command: CommandText, is_utf8: bool = False) -> None:
        self._text = command.text
        self._literals = list(reversed(command.literals))
        self._at = 0
        self._is_utf8 = is_utf8

    def take(self, expected: bytes) -> bool:
        """Takes it if it is next, ignoring case; returns whether it was."""
        found = self._text[self._at : self._at + len(expected)].upper() == expected
        self._at += len(expected) if found else 0
        return found

    def require(self, expected: bytes) -> None:
        if not self.take(expected):
            shown = "a space" if expected == b" " else expected.decode()
            raise BadCommand(f"{shown} is missing")

    @property
    def is_at_end(self) -> bool:
        return self._at == len(self._text)

    def require_end(self) -> None:
        if not self.is_at_end:
            raise BadCommand("too many arguments for this command")

    def stands_at(self, *starts: bytes) -> bool:
        return self._text[self._at :].startswith(starts)

    def find(self, pattern: re.Pattern[bytes]) -> bytes | None:
        found = pattern.match(self._text, self._at)
        if found is None:
            return None
        self._at = found.end()
        return found[0]

    def match(self, pattern: re.Pattern[bytes], what: str) -> bytes:
        found = self.find(pattern)
        if found is None:
            raise BadCommand(f"{what} is missing")
        return found

    def word(self) -> str:
        """Return an atom in capital letters."""
        return self.match(_ATOM, "a word").decode("ascii", "replace").upper()

    def tag(self) -> str:
        return self.match(_ATOM, "the tag").decode("ascii", "replace")

    def flag(self) -> str:
        return self.match(_FLAG, "a flag").decode("ascii", "replace")

    def number(self) -> int:
        return int(self.match(_NUMBER, "a number"))

    def bytes_string(self) -> bytes:
        """Return a quoted string or a literal."""
        if self._text[self._at : self._at + 1] == LITERAL_MARK:
            self._at += 1
            return self._literals.pop()
        if not self.stands_at(b'"'):
            raise BadCommand("a string is missing")
        found = _QUOTED.match(self._text, self._at)
        if found is None:
            raise BadCommand("the end of a quoted string is missing")
        self._at = found.end()
        return _ESCAPED.sub(rb"\1", found[1])

    def require_mail(self) -> None:
        """Checks that the email's literal is here; its bytes came in pieces before."""
        if self.take(b"UTF8 ("):
            self.require_mail()
            self.require(b")")
            return
        self.take(b"~")
        if not self.stands_at(LITERAL_MARK):
            raise BadCommand("the email is missing: send it as a literal")
        self.bytes_string()

    def astring(self) -> bytes:
        return self.bytes_string() if self.stands_at(b'"', LITERAL_MARK) else self.match(_ASTRING, "a string")

    def text(self) -> str:
        return self.astring().decode("utf-8", "replace")

    def folder(self) -> str:
        return self._named(self.astring())

    def pattern(self) -> str:
        raw = (
            self.bytes_string()
            if self.stands_at(b'"', LITERAL_MARK)
            else self.match(_PATTERN, "a pattern of names")
        )
        return self._named(raw)

    def _named(self, raw: bytes) -> str:
        try:
            return names.decode(raw, self._is_utf8)
        except names.BadName:
            raise BadCommand("this is not a folder name") from None

    def flags(self) -> frozenset[str]:
        """Return flags, in brackets, or bare after STORE."""
        return frozenset(self.in_brackets(self.flag) if self.stands_at(b"(") else self.several(self.flag))

    def several(self, read: Callable[[], T]) -> list[T]:
        """Return at least one value, separated by spaces."""
        found = [read()]
        while self.take(b" "):
            found.append(read())
        return found

    def in_brackets(self, read: Callable[[], T]) -> list[T]:
        self.require(b"(")
        found = []
        while not self.take(b")"):
            found.append(read())
            if not self.stands_at(b")"):
                self.require(b" ")
        return found

    def number_set(self) -> NumberSet:
        text = self.match(_SET, "a set of numbers").decode()
        parts = text.split(",")
        if len(parts) > MAX_RANGES:
            raise BadCommand("too many ranges of numbers")
        return NumberSet(tuple(_pair(part) for part in parts))

    def words_in_brackets(self) -> tuple[str, ...]:
        return tuple(self.in_brackets(self.word))


def _pair(part: str) -> tuple[int, int]:
    first, colon, last = part.partition(":")
    low = _bound(first)
    high = _bound(last) if colon else low
    return min(low, high), max(low, high)


def _bound(word: str) -> int:
    if word == "*":
        return STAR
    if not word.isdigit() or not 0 < int(word[:11]) < STAR:
        raise BadCommand("numbers of messages are from 1 to 4294967295")
    return int(word[:11])
