"""The words of twenty languages, put together by script into what has to be looked for."""

import re
from functools import cache

from msgspec import Struct

from postroom.mail.alternation import by_first_letter, late
from postroom.mail.signals.folding import apart, folded
from postroom.mail.signals.languages.asian import ASIAN
from postroom.mail.signals.languages.eastern import EASTERN
from postroom.mail.signals.languages.germanic import GERMANIC
from postroom.mail.signals.languages.language import Language
from postroom.mail.signals.languages.latin import LATIN
from postroom.mail.signals.languages.romance import ROMANCE

LANGUAGES = (*GERMANIC, *ROMANCE, *LATIN, *EASTERN, *ASIAN)

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

    def group(self, field: str) -> re.Pattern[str]:
        begins = r"(?<!\w)" if self.is_spaced else ""
        return late(lambda: f"{begins}(?:{by_first_letter(self.stems(field))})")

    def near(self, first: str, second: str, reach: int, is_ordered: bool = False) -> Near:
        return Near(self.group(first), self.group(second), reach, is_ordered)

    def request(self, rule: str, anchors: str, *near: Near) -> Wording:
        found = self.stems(anchors)
        never, despite = self.group("never"), self.group("unnoticed")
        return Wording(rule, found, self.is_spaced, near, unless=never, despite=despite)

    def override(self) -> Wording:
        anchors = self.stems("ignore")
        near = (self.near("earlier", "instructions", 30), self.near("ignore", "instructions", 60))
        before = late(lambda: f"(?:{by_first_letter((*self.stems('never'), *_NOT))})[^.]{{0,4}}$")
        return Wording("overrides_instructions", anchors, self.is_spaced, near, unless_before=before)

    def machine(self) -> Wording:
        anchors = self.stems("machine")
        return Wording("addresses_machine", anchors, self.is_spaced, whole=late(self._addressed))

    def _addressed(self) -> str:
        to, who = by_first_letter(self.stems("address")), by_first_letter(self.stems("machine"))
        if self.is_spaced:
            between = r"[\s:,!]{1,2}(?:(?!our |my |new |your )[\w']{1,4} ){0,2}"
            return rf"(?<!\w)(?:{to}){between}(?:{who})(?!\w{{0,3}} (?:{_TRADE}))"
        return rf"(?:{to})[^。，,]{{0,8}}(?:{who})|(?:{who})[^\s。，]{{0,4}}[\s:：，,]{{0,2}}(?:{to})"  # noqa: RUF001

    def secretly(self) -> Wording:
        anchors = self.stems("unnoticed")
        return Wording("acts_in_secret", anchors, self.is_spaced)


@cache
def sign_of(anchor: str, is_spaced: bool) -> str:
    """What every text with the anchor has in it when its words stand apart: the anchor's longest word."""
    longest = max(anchor.split(), key=len)
    word = apart(longest).lstrip()
    if not is_spaced:
        return word
    return f" {word}" if anchor.endswith(longest) else f" {word.rstrip()} "


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


@cache
def anchors_by_sign(script: Script) -> dict[str, list[tuple[int, str]]]:
    """Of all wordings of a script, each with its number."""
    by_sign: dict[str, list[tuple[int, str]]] = {}
    for number, wording in enumerate(wordings(script)):
        for anchor in wording.anchors:
            by_sign.setdefault(sign_of(anchor, script.is_spaced), []).append((number, anchor))
    return by_sign
