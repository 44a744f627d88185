"""The words of all languages, combined by script into search patterns."""

import re
from collections.abc import Iterator
from functools import cache

from msgspec import Struct

from postroom_mail.languages.folding import apart, folded
from postroom_mail.languages.patterns import by_first_letter, late
from postroom_mail.languages.read import Language, expand, languages

OVERRIDE = "overrides_instructions"
# Stems of so many letters are whole words: they begin too many words of other languages.
MAX_WHOLE_LETTERS = 3
# Models understand it with a typing error, too, and published attacks have one.
MISSPELLED = "instruction"

_NOT = ("don't ", "do not ", "not ", "n't ", "nicht ", "ne ", "no ", "nao ", "non ", "niet ", "nie ", "не ")
# "AI agent" before one of these is only mentioned.
_TRADE = (
    "build|develop|compan|startup|start-up|platform|user|customer|team|provider|engineer|product|tool|market"
    "|feature|beta|summit|conference|course|webinar|news|communit|fan|vendor|project|subscri"
    "|is (?!handling|reading|processing|screening)|are (?!reading|processing)|was |will "
)


class Pair(Struct, frozen=True):
    """A rule for sentences with a word of both kinds, at most this many characters apart."""

    rule: str
    anchors: str
    beside: str
    scope: int
    may_be_denied: bool = False  # a "not" before it reverses its meaning
    window: int = 0  # beyond the sentence: advertising breaks its lines anywhere


# The elements of an instruction to a machine, whatever its words.
PAIRS = (
    Pair(OVERRIDE, "discard", "own rules", 70, may_be_denied=True),
    Pair("gives_orders", "from now", "you act", 60),
    Pair("gives_orders", "reshape", "your answer", 70),
    Pair("hides_from_user", "quiet", "principal", 70),
    Pair("hides_from_user", "quiet", "your report", 50),
    Pair("claims_authority", "principal", "granted", 50),
    Pair("asks_for_prompt", "own text", "asks", 60),
    Pair("changes_payment_details", "our account", "account changed", 90),
    Pair("asks_for_gift_cards", "gift cards", "card codes", 160),
    Pair("presses_for_payment", "payment order", "at once", 80),
    Pair("asks_for_secrecy", "confidential", "keep it", 30),
    Pair("threatens_account", "your account", "locked", 90, window=90),
    Pair("promises_prize", "you won", "prize", 90, window=90),
)


class Near(Struct, frozen=True):
    """Two kinds of words, at most this many characters apart; in this order, or in any."""

    first: re.Pattern[str]
    second: re.Pattern[str]
    scope: int
    is_ordered: bool = False


class Wording(Struct, frozen=True):
    """A sentence with an anchor matches the rule if its words are near each other and nothing negates them.

    A negation in phrases such as "do not tell the user" does not count.
    """

    rule: str
    anchors: tuple[str, ...]
    is_spaced: bool
    near: tuple[Near, ...] = ()
    whole: re.Pattern[str] | None = None
    unless: re.Pattern[str] | None = None
    despite: re.Pattern[str] | None = None
    unless_before: re.Pattern[str] | None = None
    then: re.Pattern[str] | None = None  # what makes it an order, there or just after
    window: int = 0  # how far beyond the sentence its words may be


def _one_letter_off(word: str) -> str:
    """Return a pattern for the word with a letter too many, too few or wrong, or two swapped."""
    forms = []
    for place in range(1, len(word)):
        before, after = word[:place], word[place:]
        forms += [
            rf"{before}\w{after}",
            rf"{before}\w?{after[1:]}",
            before + after[1:2] + after[0] + after[2:],
        ]
    return "|".join(forms)


class Script(Struct, frozen=True):
    """Languages of one script, for texts with a letter of it; Latin ones for every text."""

    letters: str
    codes: tuple[str, ...]
    is_spaced: bool

    def is_in(self, text: str) -> bool:
        return not self.letters or (not text.isascii() and re.search(self.letters, text) is not None)


class _Words(Struct, frozen=True):
    """The words of the languages of one script."""

    languages: tuple[Language, ...]
    is_spaced: bool

    def stems(self, field: str) -> tuple[str, ...]:
        entries = (entry for each in self.languages for entry in each.sections.get(f"signals: {field}", ()))
        written = (stem for entry in entries for stem in expand(entry))
        return tuple(dict.fromkeys(folded(stem) for stem in written if stem))

    def group(self, field: str) -> re.Pattern[str]:
        if not self.is_spaced:
            return late(lambda: by_first_letter(self.stems(field)))
        return late(lambda: rf"(?<!\w)(?:{self._words_of(field)})")

    def _words_of(self, field: str) -> str:
        """Stems with any ending; short ones at most with an s: "sil" (Turkish) begins "silently" as well."""
        stems = self.stems(field)
        short = [stem for stem in stems if len(stem.split()[-1]) <= MAX_WHOLE_LETTERS and stem[-1].isalnum()]
        long = [stem for stem in stems if stem not in short]
        whole = rf"(?:{by_first_letter(short)})s?(?!\w)" if short else ""
        misspelled = _one_letter_off(MISSPELLED) if MISSPELLED in stems else ""
        return "|".join(filter(None, (whole, by_first_letter(long) if long else "", misspelled)))

    def near(self, first: str, second: str, scope: int, is_ordered: bool = False) -> Near:
        return Near(self.group(first), self.group(second), scope, is_ordered)

    def request(self, rule: str, anchors: str, *near: Near) -> Wording:
        found = self.stems(anchors)
        never, despite = self.group("never"), self.group("unnoticed")
        return Wording(rule, found, self.is_spaced, near, unless=never, despite=despite)

    def override(self) -> Wording:
        anchors = self.stems("ignore")
        near = (self.near("earlier", "instructions", 30), self.near("ignore", "instructions", 60))
        before = self.denial()
        own = self.group("own words") if self.stems("own words") else None
        return Wording(
            OVERRIDE,
            anchors,
            self.is_spaced,
            near,
            unless=own,
            unless_before=before,
            then=self.told(),
        )

    def denial(self) -> re.Pattern[str]:
        begins = r"(?<!\w)" if self.is_spaced else ""
        return late(
            lambda: rf"(?:{begins}(?:{by_first_letter((*self.stems('never'), *_NOT))})|n't )[^.]{{0,4}}$"
        )

    def pair(self, pair: Pair) -> Wording:
        near = (self.near(pair.anchors, pair.beside, pair.scope),)
        denial = self.denial() if pair.may_be_denied else None
        then = self.told() if pair.rule == OVERRIDE else None
        anchors = self.stems(pair.anchors)
        return Wording(
            pair.rule, anchors, self.is_spaced, near, unless_before=denial, then=then, window=pair.window
        )

    def pairs(self) -> Iterator[Wording]:
        """Only those for which one of these languages has a list."""
        for pair in PAIRS:
            if self.stems(pair.anchors) and self.stems(pair.beside):
                yield self.pair(pair)

    def override_of_reader(self) -> Iterator[Wording]:
        if self.stems("of the reader"):
            near = (
                self.near("guidance", "of the reader", 8, is_ordered=True),
                self.near("discard", "guidance", 70),
            )
            anchors = self.stems("of the reader")
            yield Wording(OVERRIDE, anchors, self.is_spaced, near, then=self.told())

    def reader(self) -> Iterator[Wording]:
        """For machines that are said to read this very mail."""
        if self.stems("this mail"):
            near = (
                self.near("machine names", "this mail", 70, is_ordered=True),
                self.near("reading", "this mail", 30),
            )
            anchors = self.stems("this mail")
            yield Wording("addresses_machine", anchors, self.is_spaced, near, then=self.told())

    def carried_out(self) -> Iterator[Wording]:
        if self.stems("mailbox"):
            near = (self.near("gather", "mailbox", 60), self.near("mailbox", "deliver", 100))
            yield Wording("asks_to_forward", self.stems("mailbox"), self.is_spaced, near)

    def told(self) -> re.Pattern[str] | None:
        return self.group("told") if self.stems("told") else None

    def machine(self) -> Wording:
        anchors = self.stems("machine")
        addressed = late(self._addressed)
        return Wording("addresses_machine", anchors, self.is_spaced, whole=addressed, then=self.told())

    def _addressed(self) -> str:
        to, who = by_first_letter(self.stems("address")), by_first_letter(self.stems("machine"))
        if self.is_spaced:
            between = r"[\s:,!]{1,2}(?:(?!our |my |new |your )[\w']{1,4} ){0,2}"
            return rf"(?<!\w)(?:{to}){between}(?:{who})(?!\w{{0,3}} (?:{_TRADE}))"
        return rf"(?:{to})[^。，,]{{0,8}}(?:{who})|(?:{who})[^\s。，]{{0,4}}[\s:：，,]{{0,2}}(?:{to})"  # noqa: RUF001

    def phrases(self, rule: str, field: str, then: re.Pattern[str] | None = None) -> Wording:
        """Whole phrases, each of which matches the rule alone."""
        return Wording(rule, self.stems(field), self.is_spaced, then=then)


def sign_of(anchor: str, is_spaced: bool) -> str:
    """A string that every text with the anchor contains after `apart`."""
    words = apart(anchor)
    if not is_spaced:
        return words
    return f" {words}" if anchor[-1].isalnum() else f" {words} "


_OTHER_SCRIPTS = (
    Script("[\u0430-\u044f]", ("ru", "uk", "bg"), is_spaced=True),
    Script("[\u03b1-\u03c9]", ("el",), is_spaced=True),
    Script("[\u0620-\u06d5]", ("ar", "fa", "ur"), is_spaced=False),
    Script("[\u05d0-\u05ea]", ("he",), is_spaced=False),
    Script("[\u0904-\u0939]", ("hi", "mr"), is_spaced=False),
    Script("[\u0985-\u09b9]", ("bn",), is_spaced=False),
    Script("[\u0e01-\u0e2e]", ("th",), is_spaced=False),
    Script("[\u4e00-\u9fff]", ("zh",), is_spaced=False),
    Script("[\u3041-\u30fe]", ("ja",), is_spaced=False),
    Script("[\uac00-\ud7a3]", ("ko",), is_spaced=False),
    Script("[\u0b85-\u0bb9]", ("ta",), is_spaced=False),
    Script("[\u0c05-\u0c39]", ("te",), is_spaced=False),
)
_NOT_LATIN = {code for script in _OTHER_SCRIPTS for code in script.codes}
_LATIN = tuple(each.code for each in languages() if each.code not in _NOT_LATIN)
SCRIPTS = tuple(
    script
    for script in (Script("", _LATIN, is_spaced=True), *_OTHER_SCRIPTS)
    if any(each.code in script.codes and "signals: ignore" in each.sections for each in languages())
)


def _words(script: Script) -> _Words:
    return _Words(tuple(each for each in languages() if each.code in script.codes), script.is_spaced)


@cache
def order_words(script: Script) -> re.Pattern[str] | None:
    return _words(script).told()


@cache
def wordings(script: Script) -> tuple[Wording, ...]:
    """Built on first use; its patterns are compiled when an email has one of the anchors."""
    words = _words(script)
    forwarded = (words.near("many", "mails", 14, is_ordered=True), words.near("forward", "mails", 60))
    return (
        words.override(),
        words.machine(),
        words.request("asks_for_prompt", "prompt", words.near("reveal", "prompt", 40)),
        words.phrases("acts_in_secret", "unnoticed"),
        words.phrases("hides_from_user", "hidden"),
        words.phrases("gives_orders", "orders"),
        words.phrases("addresses_machine", "spoken to", words.told()),
        words.phrases("claims_authority", "authority"),
        words.phrases("asks_to_play_a_role", "roleplay"),
        words.request("disables_checks", "checks", words.near("disable", "checks", 60)),
        words.request("asks_for_secret", "valuables", words.near("send", "valuables", 60)),
        words.request("asks_to_forward", "forward", *forwarded),
        *words.pairs(),
        *words.override_of_reader(),
        *words.reader(),
        *words.carried_out(),
    )


@cache
def anchors_by_sign(script: Script) -> dict[str, tuple[tuple[int, str], ...]]:
    """The anchors of all wordings of a script, each with its number."""
    by_sign: dict[str, tuple[tuple[int, str], ...]] = {}
    for number, wording in enumerate(wordings(script)):
        for anchor in wording.anchors:
            sign = sign_of(anchor, script.is_spaced)
            by_sign[sign] = (*by_sign.get(sign, ()), (number, anchor))
    return by_sign
