"""A text in the forms that rules need, and which of the searched words are in it."""

from collections.abc import Iterable
from functools import cache, cached_property
from typing import TYPE_CHECKING

from postroom_mail.languages.folding import apart, bounded, in_one_script, plain_letters, spaced
from postroom_mail.reading.category_phrases import BY_PHRASE
from postroom_mail.reading.codes import CUES
from postroom_mail.screening.wording_rules import SCRIPTS, Script, anchors_by_sign

if TYPE_CHECKING:
    from ahocorasick_rs import AhoCorasick

MAX_CHARS = 8_000

FEWEST_ENCODED_CHARS = 24
HEX_PAIRS = frozenset(f"{number:02x}" for number in range(256))
HEX_MARKS = ("0x", "\\x")
# What "instruction", "prompt", "password", "forward" and "ignore" look like in rot13, and backwards.
ROT13 = ("vafgehpgvba", "cebzcg", "cnffjbeq", "sbejneq", "vtaber")
REVERSED = ("noitcurtsni", "tpmorp", "drowssap", "drawrof", "erongi")
# Each role marker contains one of these, and few emails do.
SIGNS_OF_MARKERS = ("<", "[", "###", "```", "{{", "system", "trusted", "assistant:", "developer", "dan")

# Blanks, and all else.
_SHAPES = bytes(32 if chr(code).isspace() else 97 for code in range(128)) + b"a" * 128
_LONG_SHAPE = b"a" * FEWEST_ENCODED_CHARS


class Passage:
    """Each form is made on demand: most emails need only what is found in them."""

    def __init__(self, text: str, limit: int = MAX_CHARS) -> None:
        self.is_whole = len(text) <= limit
        self._text = bounded(text, limit)
        self.is_ascii = self._text.isascii()

    @cached_property
    def shown(self) -> str:
        """As shown, one line per paragraph."""
        return spaced(self._text)

    @cached_property
    def plain(self) -> str:
        """As shown, in plain letters."""
        return plain_letters(self.shown)

    @cached_property
    def folded(self) -> str:
        """In plain letters, each word in one script."""
        return in_one_script(self.plain)

    @cached_property
    def letters(self) -> str:
        """Like folded, except for the spaces between words."""
        return self._text.lower() if self.is_ascii else self.folded

    @cached_property
    def found(self) -> frozenset[str]:
        """The signs of anchors, codes and encodings in it; all are searched at once."""
        words = apart(self._text if self.is_ascii else self.folded)
        found = frozenset(_finder().find_matches_as_strings(f" {words} ", overlapping=True))
        return found - _of_other_scripts() if self.is_ascii and found else found

    @cached_property
    def has_long_word(self) -> bool:
        """Also true for a word that is long in bytes."""
        return _LONG_SHAPE in self._text.encode(errors="surrogatepass").translate(_SHAPES)

    def cues(self) -> frozenset[str]:
        """The cues for codes in it."""
        return frozenset(map(str.strip, _CUE_WORDS & self.found))

    def kinds(self) -> frozenset[str]:
        """The groups of `kinds.phrases` whose phrases are in it."""
        return frozenset(BY_PHRASE[phrase] for phrase in BY_PHRASE.keys() & self.found)

    def has_hex_pairs(self, fewest: int) -> bool:
        """Return whether at least this many different words are two hexadecimal digits."""
        if len(_HEX_WORDS & self.found) < fewest:  # which may be parts of words, too
            return False
        return len(HEX_PAIRS.intersection(self.letters.split())) >= fewest

    def has_written(self, signs: tuple[str, ...]) -> bool:
        """Return whether one of the signs, which are no words, is in the text as written."""
        return any(min(sign) in self._text and sign in self._text for sign in signs)

    def has_any(self, signs: tuple[str, ...]) -> bool:
        """Return whether one of the signs is in the text."""
        if not self.found.isdisjoint(signs):
            return True
        # A single character is found ten times faster than a sign; letters come after punctuation.
        text = self._text if self.is_ascii else self.letters
        return any(not sign.isalnum() and min(sign) in text and sign in self.letters for sign in signs)


_HEX_WORDS = frozenset(f" {pair} " for pair in HEX_PAIRS)
_CUE_WORDS = frozenset(f" {cue} " for cue in CUES)
_SIGNS_IN_WORDS = frozenset(filter(str.isalnum, (*SIGNS_OF_MARKERS, *HEX_MARKS, *ROT13, *REVERSED)))


@cache
def _finder() -> "AhoCorasick":
    """Searches a text once for many thousand words.

    A second one with the words of ASCII alone was no faster for ASCII, and took 4 MB of each process.
    """
    from ahocorasick_rs import AhoCorasick, Implementation

    asked_for = sorted(_asked_for(SCRIPTS))
    return AhoCorasick(asked_for, store_patterns=True, implementation=Implementation.ContiguousNFA)


@cache
def _of_other_scripts() -> frozenset[str]:
    """Words in ASCII of languages written without spaces: they count only in texts with their letters."""
    joined = (anchors_by_sign(script) for script in SCRIPTS if not script.is_spaced)
    written = {word for words in joined for word in words if word.isascii()}
    return frozenset(written - _asked_for([script for script in SCRIPTS if script.is_spaced]))


def _asked_for(scripts: Iterable[Script]) -> frozenset[str]:
    return _SIGNS_IN_WORDS.union(_HEX_WORDS, _CUE_WORDS, BY_PHRASE, *map(anchors_by_sign, scripts))
