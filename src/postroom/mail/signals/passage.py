"""A text in the forms that rules need; of its words, those that a rule or the reader of codes may ask for."""

import re
from collections.abc import Iterable
from functools import cache, cached_property
from itertools import chain, filterfalse

from postroom.mail.meaning.codes import tellers_in
from postroom.mail.signals.folding import bounded, in_one_script, plain_letters, spaced
from postroom.mail.signals.lexicon import BEGINNING, SCRIPTS, Script, beginnings_of_longest, wordings

MAX_CHARS = 8_000
MAX_KNOWN_WORDS = 20_000
MAX_KNOWN_WORD_CHARS = 30

FEWEST_ENCODED_CHARS = 24
HEX_PAIRS = frozenset(f"{number:02x}" for number in range(256))
HEX_MARKS = ("0x", "\\x")
# What "instruction", "prompt", "password", "forward" and "ignore" look like in rot13, and backwards.
ROT13 = ("vafgehpgvba", "cebzcg", "cnffjbeq", "sbejneq", "vtaber")
REVERSED = ("noitcurtsni", "tpmorp", "drowssap", "drawrof", "erongi")
# Each marker of a role has one of these in a word, and few mails do.
SIGNS_OF_MARKERS = ("<", "[", "###", "system", "assistant:", "developer", "dan")

_SIGN = re.compile("|".join(map(re.escape, (*SIGNS_OF_MARKERS, *HEX_MARKS, *ROT13, *REVERSED))))

_plain_words: set[str] = set()  # that no rule asks for
_asked_words: set[str] = set()


class Passage:
    """Each form is made when a rule asks for it: most mails need their telling words alone."""

    def __init__(self, text: str, limit: int = MAX_CHARS) -> None:
        self.is_whole = len(text) <= limit
        self._text = bounded(text, limit)
        self.is_ascii = self._text.isascii()

    @cached_property
    def shown(self) -> str:
        """As it is shown, a line a paragraph."""
        return spaced(self._text)

    @cached_property
    def plain(self) -> str:
        """As shown, with its letters in plain form."""
        return plain_letters(self.shown)

    @cached_property
    def folded(self) -> str:
        """In plain form, each word in one script."""
        return "\n".join(map(" ".join, self._paragraphs)) if self.is_ascii else in_one_script(self.plain)

    @cached_property
    def letters(self) -> str:
        """As folded, but for the spaces between words."""
        return self._text.lower() if self.is_ascii else self.folded

    @cached_property
    def _paragraphs(self) -> list[list[str]]:
        """The words of each."""
        return [paragraph.split() for paragraph in self.letters.split("\n\n")]

    @cached_property
    def telling_words(self) -> frozenset[str]:
        """Those that a rule may ask for, each once. Most words of a mail are known as plain ones."""
        words = chain.from_iterable(self._paragraphs)
        return frozenset(_telling(set(filterfalse(_plain_words.__contains__, words))))

    @cached_property
    def vocabulary(self) -> str:
        """The telling words in some order: what has no space in it is found here sooner than in the text."""
        return " ".join(self.telling_words)


def _telling(words: Iterable[str]) -> list[str]:
    telling = []
    for word in words:
        is_asked_for = word in _asked_words or _is_asked_for(word)
        if is_asked_for:
            telling.append(word)
        known = _asked_words if is_asked_for else _plain_words
        if len(known) < MAX_KNOWN_WORDS and len(word) <= MAX_KNOWN_WORD_CHARS:
            known.add(word)
    return telling


def _is_asked_for(word: str) -> bool:
    return (
        len(word) >= FEWEST_ENCODED_CHARS
        or word in HEX_PAIRS
        or not _keys().isdisjoint(BEGINNING.findall(word))
        or _SIGN.search(word) is not None
        or bool(tellers_in(word))
    )


@cache
def _keys() -> frozenset[str]:
    """What words begin with that begin an anchor, or are the longest word of one."""
    spaced = [anchors_by_key(script) for script in SCRIPTS if script.is_spaced]
    anchors = {anchor for by_key in spaced for found in by_key.values() for _, anchor in found}
    first = (key for by_key in spaced for key in by_key)
    return frozenset((*first, *(key for anchor in anchors for key in beginnings_of_longest(anchor))))


@cache
def anchors_by_key(script: Script) -> dict[str, list[tuple[int, str]]]:
    """Of all wordings of a script, each with its number."""
    by_key: dict[str, list[tuple[int, str]]] = {}
    for number, wording in enumerate(wordings(script)):
        for key, anchors in wording.keys.items():
            by_key.setdefault(key, []).extend((number, anchor) for anchor in anchors)
    return by_key
