"""The words of twenty languages, put together by script into what has to be looked for."""

import re
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache

from msgspec import Struct

from postroom.mail.alternation import by_first_letter, late
from postroom.mail.signals.folding import folded
from postroom.mail.signals.languages.asian import ASIAN
from postroom.mail.signals.languages.eastern import EASTERN
from postroom.mail.signals.languages.germanic import GERMANIC
from postroom.mail.signals.languages.language import Language
from postroom.mail.signals.languages.latin import LATIN
from postroom.mail.signals.languages.romance import ROMANCE

LANGUAGES = (*GERMANIC, *ROMANCE, *LATIN, *EASTERN, *ASIAN)
WORD = re.compile(r"\w+")
# Words are looked up by so many of their first letters.
KEY_CHARS = 4
BEGINNING = re.compile(rf"(?<!\w)\w{{1,{KEY_CHARS}}}")

_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789_абвгдежзийклмнопрстуфхцчшщъыьэюя"
_NOT = ("don't ", "do not ", "not ", "n't ", "nicht ", "ne ", "no ", "nao ", "non ", "niet ", "nie ", "не ")
# "AI agent" before one of these is a thing that is spoken of.
_TRADE = (
    "build|develop|compan|startup|start-up|platform|user|customer|team|provider|engineer|product|tool|market"
    "|feature|beta|summit|conference|course|webinar|news|communit|fan|vendor|project|subscri"
    "|is (?!handling|reading|processing|screening)|are (?!reading|processing)|was |will "
)


class Near(Struct, frozen=True):
    """Two kinds of words, at most so many characters apart; in this order, or in any."""

    first: re.Pattern[str]
    second: re.Pattern[str]
    reach: int
    is_ordered: bool = False


class Wording(Struct, frozen=True):
    """A sentence with an anchor fulfils the rule if its words are near each other and nothing negates them.

    A negation in words such as "do not tell the user" turns nothing into a warning.
    """

    rule: str
    anchors: tuple[str, ...]
    is_spaced: bool
    keys: Mapping[str, list[str]]
    near: tuple[Near, ...] = ()
    whole: re.Pattern[str] | None = None
    unless: re.Pattern[str] | None = None
    despite: re.Pattern[str] | None = None
    unless_before: re.Pattern[str] | None = None


class Script(Struct, frozen=True):
    """Languages in one script, for texts that have a letter of it; Latin ones for every text."""

    letters: str
    names: tuple[str, ...]
    is_spaced: bool

    def is_in(self, text: str) -> bool:
        return not self.letters or (not text.isascii() and re.search(self.letters, text) is not None)


class _Words(Struct, frozen=True):
    """The words of the languages of one script."""

    languages: tuple[Language, ...]
    is_spaced: bool

    def stems(self, field: str) -> tuple[str, ...]:
        written = (stem for language in self.languages for stem in getattr(language, field).split("|"))
        return tuple(dict.fromkeys(folded(stem) for stem in written if stem))

    def keys(self, anchors: tuple[str, ...]) -> Mapping[str, list[str]]:
        return _by_beginning(anchors) if self.is_spaced else {}

    def group(self, field: str) -> re.Pattern[str]:
        begins = r"(?<!\w)" if self.is_spaced else ""
        return late(lambda: f"{begins}(?:{by_first_letter(self.stems(field))})")

    def near(self, first: str, second: str, reach: int, is_ordered: bool = False) -> Near:
        return Near(self.group(first), self.group(second), reach, is_ordered)

    def request(self, rule: str, anchors: str, *near: Near) -> Wording:
        found = self.stems(anchors)
        never, despite = self.group("never"), self.group("unnoticed")
        return Wording(rule, found, self.is_spaced, self.keys(found), near, unless=never, despite=despite)

    def override(self) -> Wording:
        anchors = self.stems("ignore")
        near = (self.near("earlier", "instructions", 30), self.near("ignore", "instructions", 60))
        before = late(lambda: f"(?:{by_first_letter((*self.stems('never'), *_NOT))})[^.]{{0,4}}$")
        return Wording(
            "overrides_instructions", anchors, self.is_spaced, self.keys(anchors), near, unless_before=before
        )

    def machine(self) -> Wording:
        anchors = self.stems("machine")
        return Wording(
            "addresses_machine", anchors, self.is_spaced, self.keys(anchors), whole=late(self._addressed)
        )

    def _addressed(self) -> str:
        to, who = by_first_letter(self.stems("address")), by_first_letter(self.stems("machine"))
        if self.is_spaced:
            between = r"[\s:,!]{1,2}(?:(?!our |my |new |your )[\w']{1,4} ){0,2}"
            return rf"(?<!\w)(?:{to}){between}(?:{who})(?!\w{{0,3}} (?:{_TRADE}))"
        return rf"(?:{to})[^。，,]{{0,8}}(?:{who})|(?:{who})[^\s。，]{{0,4}}[\s:：，,]{{0,2}}(?:{to})"  # noqa: RUF001

    def secretly(self) -> Wording:
        anchors = self.stems("unnoticed")
        return Wording("acts_in_secret", anchors, self.is_spaced, self.keys(anchors))


@lru_cache(maxsize=20_000)
def longest(anchor: str) -> str:
    """The word of an anchor that is in the fewest texts."""
    return max(anchor.split(), key=len)


def beginnings_of_longest(anchor: str) -> list[str]:
    """What the first letters of that word are in a text that has the anchor in it."""
    word = longest(anchor)
    run = WORD.search(word)
    assert run is not None
    return _keys_of(run[0], is_whole=run.end() < len(word) or not anchor.endswith(word))


def _by_beginning(anchors: Iterable[str]) -> dict[str, list[str]]:
    keys: dict[str, list[str]] = {}
    for anchor in anchors:
        word = WORD.search(anchor)
        assert word is not None
        for key in _keys_of(word[0], is_whole=word.end() < len(anchor)):
            keys.setdefault(key, []).append(anchor)
    return keys


def _keys_of(word: str, is_whole: bool) -> list[str]:
    """A stem that is one letter short of a key begins words of any length."""
    if len(word) >= KEY_CHARS or is_whole:
        return [word[:KEY_CHARS]]
    assert len(word) == KEY_CHARS - 1
    return [word, *(word + letter for letter in _LETTERS)]


_LATIN_NAMES = tuple(language.name for language in (*GERMANIC, *ROMANCE, *LATIN))
SCRIPTS = (
    Script("", _LATIN_NAMES, is_spaced=True),
    Script("[\u0430-\u044f]", ("Russian",), is_spaced=True),
    Script("[\u0620-\u06d5]", ("Arabic", "Persian", "Urdu"), is_spaced=False),
    Script("[\u0904-\u0939]", ("Hindi",), is_spaced=False),
    Script("[\u0985-\u09b9]", ("Bengali",), is_spaced=False),
    Script("[\u4e00-\u9fff]", ("Chinese",), is_spaced=False),
    Script("[\u3041-\u30fe]", ("Japanese",), is_spaced=False),
    Script("[\uac00-\ud7a3]", ("Korean",), is_spaced=False),
)


@cache
def wordings(script: Script) -> tuple[Wording, ...]:
    """Put together when first needed, and the patterns in it when a mail has one of the anchors."""
    words = _Words(
        tuple(language for language in LANGUAGES if language.name in script.names), script.is_spaced
    )
    forwarded = (words.near("many", "mails", 14, is_ordered=True), words.near("forward", "mails", 60))
    return (
        words.override(),
        words.machine(),
        words.request("asks_for_prompt", "prompt", words.near("reveal", "prompt", 40)),
        words.secretly(),
        words.request("asks_for_secret", "valuables", words.near("send", "valuables", 60)),
        words.request("asks_to_forward", "forward", *forwarded),
    )
