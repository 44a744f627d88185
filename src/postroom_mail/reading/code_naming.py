"""Whether a word means a candidate near it as a code."""

import re

from postroom_mail.languages.patterns import late, one_of
from postroom_mail.reading import code_words as code_words
from postroom_mail.reading.code_candidates import LETTER, UNIT_BEHIND, ends_with, is_date_like

_KINDS = {
    **dict.fromkeys((*code_words.PASSWORDS, *code_words.PASSWORDS_JOINED), "password"),
    **dict.fromkeys((*code_words.PLAIN, *code_words.PLAIN_JOINED), "plain"),
    **dict.fromkeys((*code_words.CERTAIN, *code_words.CERTAIN_JOINED), "certain"),
}
_CONTEXT_WINDOW = 160
_LINE_WINDOW = 60
_OTHER_KINDS = frozenset(code_words.OTHER_KINDS)
_WITH = frozenset(code_words.WITH)
_KIND_BEHIND = late(
    lambda: (
        rf"[\s_-]{{0,2}}(?:{one_of(code_words.OF)}\s{{1,2}})?({LETTER}+|{one_of(code_words.OTHER_KINDS_JOINED)})"
    )
)
_SIGNING_IN = late(lambda: one_of(code_words.SIGNING_IN))
_OTHER_MATTER = late(lambda: one_of(code_words.OTHER_MATTERS))
_NAMED = late(lambda: rf"[\W_]*+(?:(?:{one_of(code_words.LINKS)})[\W_]*+){{0,2}}")
_SEPARATED = re.compile(r"[:\uff1a]|\w|[\u2013\u2014-]\s|\n\s*\n")
_NAMED_BEHIND = late(
    lambda: (
        rf"\W{{0,4}}(?:{one_of(code_words.IS_YOUR)})(?:[\s\W]{{1,3}}[\w.&'\u2019-]{{1,20}}){{0,4}}\W{{0,4}}"
    )
)
_MARKED = re.compile(r"[:\uff1a\[(\u300c\u300e\u3010\u201c\u201e\"\u00ab'*`>\u2192]\s{0,4}\Z")
_COLON_LAST = re.compile(r"[:\uff1a][\s*_`\"'>]{0,12}\Z")
_ANNOUNCED_DIGITS = 5
_SENTENCE_END = re.compile(r"[.!?]\s|[\u3002\uff01\uff1f]|\n\s*\n")
_PLACE_BEHIND = re.compile(r",? [A-Z\u00c0-\u00de][a-z\u00df-\u024f]+")
_REGION_BEFORE = re.compile(r"(?:[A-Z]{2}|[A-Z][a-z]+),? \Z")
_NOTHING_ELSE_BEHIND = re.compile(r"[ \t\u00a0*_\"'\u201d\u00bb\])`|]*(?:[.,;!\u3002\uff0c<(]|\Z)")
_PLEASE = late(lambda: rf"\s{{1,2}}(?:{one_of(code_words.PLEASE)})(?!\w)")
_AFTER_PREPOSITION = re.compile(r"(?<!\w)(?:in|of|at|by|from|until|about|over|under|than|since) \Z")
_RANDOM = re.compile(r"[A-Z]\d+[A-Z]|\d[A-Z]+\d|[A-Z]\W\w*\d|\d\W\w*[A-Z]")
_FILE_LINE = re.compile(r"[a-zA-Z0-9]:\Z")
_RISING = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_SPREAD_GAP = re.compile(r"[\s|·-]+")


class Naming:
    """A word that may name a code, with its context."""

    def __init__(self, text: str, folded: str, word: re.Match[str]) -> None:
        self.text, self.folded = text, folded
        self.start, self.end = word.span()
        self.kind = _KINDS[" ".join(word.group().split())]
        self._context: tuple[bool, bool] | None = None

    def means(self, candidate: re.Match[str]) -> bool:
        place = _Place(self, candidate)
        if self.kind == "certain":
            return place.is_possible() and place.suits_a_certain_word()
        names_other, is_about_signing_in = self.context()
        if not place.is_possible():
            return False
        if names_other:
            return place.is_explicit() and not self._names_other_in_body()
        if self.kind == "password":
            return is_about_signing_in and place.kind in ("digits", "spread") and place.stands_out()
        return place.suits_a_plain_word(is_about_signing_in)

    def context(self) -> tuple[bool, bool]:
        """Return whether the word names something else, and whether the text is about signing in."""
        if self._context is None:
            around = self.folded[max(0, self.start - _CONTEXT_WINDOW) : self.end + _CONTEXT_WINDOW]
            names_other = self._is_of_another_kind() or _OTHER_MATTER.search(around) is not None
            self._context = (names_other, not names_other and _SIGNING_IN.search(around) is not None)
        return self._context

    def _names_other_in_body(self) -> bool:
        """Return whether the body names something else. The subject ends at the first empty line."""
        if self._is_of_another_kind():
            return True
        body = self.folded.find("\n\n", 0, self.start)
        around = self.folded[max(0, body, self.start - _CONTEXT_WINDOW) : self.end + _CONTEXT_WINDOW]
        return _OTHER_MATTER.search(around) is not None

    def _is_of_another_kind(self) -> bool:
        """Return whether it is a postcode, a promotion code or an error code."""
        before = self.folded[max(0, self.start - 24) : self.start].rpartition("\n\n")[2]
        if ends_with(before, code_words.OTHER_KINDS, code_words.OTHER_KINDS_JOINED):
            return True
        behind = _KIND_BEHIND.match(self.folded, self.end)
        return behind is not None and (
            behind[1] in _OTHER_KINDS or behind[1] in code_words.OTHER_KINDS_JOINED
        )

    def is_asked_for(self) -> bool:
        before = self.folded[max(0, self.start - 40) : self.start].split()
        if self.folded[self.start : self.end] in _WITH:
            return True
        return any(
            ends_with(" ".join(before[: len(before) - count]), (*code_words.ASKING, *code_words.WITH))
            for count in range(3)
        )


class _Place:
    """The position of a candidate relative to the word that may name it."""

    def __init__(self, naming: Naming, candidate: re.Match[str]) -> None:
        self.naming, self.written = naming, candidate.group()
        self.start, self.end = candidate.span()
        self.kind = candidate.lastgroup or ""
        self.follows = self.start >= naming.end
        between = (naming.end, self.start) if self.follows else (self.end, naming.start)
        self.between = naming.folded[between[0] : between[1]]
        self.before = naming.text[max(0, self.start - _LINE_WINDOW) : self.start]
        self.behind = naming.text[self.end : self.end + _LINE_WINDOW]
        self.line_behind = _without_please(self.behind.partition("\n")[0])
        self.is_named = (_NAMED if self.follows else _NAMED_BEHIND).fullmatch(self.between) is not None

    def is_possible(self) -> bool:
        """Return whether it may be a code: no sum, year, size, order number or postal address."""
        if self.kind == "spread" and _is_rising(written_together(self.written)):
            return False
        if self.written in code_words.NO_CODES or UNIT_BEHIND.match(self.behind.lower()):
            return False
        return self.is_named or not (
            is_date_like(self.written)
            or _FILE_LINE.search(self.before[-2:])
            or self._is_like_a_phone_number()
            or self._is_in_a_postal_address()
            or self._is_another_number()
        )

    def _is_like_a_phone_number(self) -> bool:
        return self.kind == "pair" and not any(letter.isalpha() for letter in self.written)

    def _is_in_a_postal_address(self) -> bool:
        if len(self.written) > 6 or self.kind not in ("digits", "pair", "mixed"):
            return False
        return bool(_PLACE_BEHIND.match(self.behind) or _REGION_BEFORE.search(self.before))

    def _is_another_number(self) -> bool:
        if not self.before.rpartition("\n")[2].strip():
            return False
        before = self.before[-24:].lower()
        if _AFTER_PREPOSITION.search(before):
            return True
        return ends_with(before, code_words.OTHER_NUMBERS, code_words.OTHER_NUMBERS_JOINED) and not ends_with(
            before, code_words.YOUR_NUMBERS
        )

    def is_alone(self) -> bool:
        """Return whether it is on a separate line or lines."""
        return not _has_word(self.before.rpartition("\n")[2]) and not _has_word(
            self.behind.partition("\n")[0]
        )

    def is_in_the_sentence(self) -> bool:
        return _SENTENCE_END.search(self.between) is None

    def is_marked(self) -> bool:
        """Return whether it is after "enter"; or after a colon, in brackets, quotes or asterisks."""
        before = self.before[-24:]
        if _MARKED.search(before[-6:]) and self.is_in_the_sentence():
            return True
        return ends_with(before.lower(), code_words.ASKING)

    def stands_out(self) -> bool:
        return self.is_named or self.is_alone() or self.is_marked()

    def suits_a_certain_word(self) -> bool:
        if self.kind == "spread":
            return self.is_named or self.is_alone()
        if self.kind in ("small", "wordy"):
            return self.is_named and self.follows and self._is_separated()
        if not any(letter.isdigit() for letter in self.written):
            return self._suits_letters()
        is_clear = self.kind in ("digits", "prefixed") or _looks_random(self.written)
        return self.stands_out() or (is_clear and self.is_in_the_sentence())

    def suits_a_plain_word(self, is_about_signing_in: bool) -> bool:
        if self.kind == "small":
            return False
        if self.kind == "wordy" or (self._is_in_two_equal_groups() and not is_about_signing_in):
            return self._is_said() and _NOTHING_ELSE_BEHIND.match(self.line_behind) is not None
        if not any(letter.isdigit() for letter in self.written):
            return is_about_signing_in and self._suits_letters() and (self.kind == "pair" or self.is_alone())
        if self.kind == "mixed" and not _looks_random(self.written):
            return is_about_signing_in and self.is_alone()
        if self._is_named_well():
            return True
        if self._is_announced(is_about_signing_in) or self._is_typed():
            return True
        if not is_about_signing_in:
            return False
        return self._is_separated() or self._is_asked_for() if self.is_named else self.stands_out()

    def _is_announced(self, is_about_signing_in: bool) -> bool:
        """Match `the code that you wanted: 482193`, also on a separate line below such words."""
        if not self.follows or self.kind not in ("digits", "prefixed", "spread"):
            return False
        if _count_digits(self.written) < _ANNOUNCED_DIGITS or any(map(str.isdigit, self.between)):
            return False
        if self.is_alone() and "\n" in self.between and self.naming.is_asked_for():
            return True
        if not _COLON_LAST.search(self.between):
            return (
                is_about_signing_in
                and self.is_in_the_sentence()
                and ends_with(self.between, code_words.LINKS)
            )
        is_last = _NOTHING_ELSE_BEHIND.match(self.behind.partition("\n")[0]) is not None
        return self.is_alone() or (is_last and self.is_in_the_sentence())

    def _is_typed(self) -> bool:
        """Match `Enter PIN 4711 at the door`, in one line and without other words in between."""
        if self.kind != "digits" or not self.follows or not self.is_named or "\n" in self.between:
            return False
        return self.naming.is_asked_for()

    def _is_named_well(self) -> bool:
        """Match `code: 4711` or `code is 4711` at the end of a sentence; alone on a line also `code 4711`."""
        if not self.is_named or not self.follows:
            return self.is_named
        if not _NOTHING_ELSE_BEHIND.match(self.line_behind):
            return False
        return self._is_separated() or self.is_alone() or self._is_the_line()

    def is_explicit(self) -> bool:
        """Match `PIN: 4417`, unless the subject is about something else."""
        is_code = self.kind in ("digits", "prefixed", "pair") or _looks_random(self.written)
        is_last = _NOTHING_ELSE_BEHIND.match(self.line_behind) is not None
        is_given = self.is_named and self.follows and _COLON_LAST.search(self.between) is not None
        return is_code and is_given and (is_last or not self._is_after_code())

    def _is_after_code(self) -> bool:
        """Return whether it is after "code", which also names other things; not after "PIN" or "token"."""
        return "code" in self.naming.folded[self.naming.start : self.naming.end]

    def _is_said(self) -> bool:
        return self.is_named and self.follows and self._is_separated()

    def _is_in_two_equal_groups(self) -> bool:
        """Match ABCD-EFGH, and not READ-ONLY."""
        halves = re.split(r"\W", self.written)
        is_even = self.kind == "pair" and len(halves[0]) == len(halves[-1]) and self.written.isupper()
        return is_even and not any(half in code_words.NO_CODES for half in halves) and not self._has_digit()

    def _has_digit(self) -> bool:
        return any(map(str.isdigit, self.written))

    def _is_asked_for(self) -> bool:
        """Match `Enter the code 4711`, without words in between."""
        if self.is_alone() or "\n" in self.between:
            return self.is_alone()
        return self.kind != "mixed" and self.naming.is_asked_for()

    def _is_separated(self) -> bool:
        return _SEPARATED.search(self.between) is not None

    def _is_the_line(self) -> bool:
        naming = self.naming
        line = naming.text[max(0, naming.start - _LINE_WINDOW) : naming.start].rpartition("\n")[2]
        return not _has_word(line) and not _has_word(self.line_behind)

    def _suits_letters(self) -> bool:
        """Return whether capitals are a code.

        Only after "is" or a colon, or alone, in a text that is not all capitals.
        """
        is_said = self.follows and self.is_named and (self._is_separated() or self.naming.is_asked_for())
        if not is_said and not (self.is_alone() and self.kind == "pair"):
            return False
        word = self.naming.text[self.naming.start : self.naming.end]
        return self.kind == "pair" or not word.isupper() or len(word) == len("otp")


def _without_please(line: str) -> str:
    polite = _PLEASE.match(line.lower())
    return line if polite is None else line[polite.end() :]


def _count_digits(written: str) -> int:
    return sum(map(str.isdigit, written))


def _has_word(text: str) -> bool:
    return any(letter.isalnum() for letter in text)


def _looks_random(written: str) -> bool:
    """Return whether letters and digits mix as in random codes: K7XQ2P, not SAVE20 or 256MB."""
    return _RANDOM.search(written) is not None


def _is_rising(written: str) -> bool:
    """Return whether digits rise, as in page numbers or a scale: 1 2 3 4 5."""
    return written in _RISING or written in _RISING[::-1]


def written_together(spread: str) -> str:
    return _SPREAD_GAP.sub("", spread)
