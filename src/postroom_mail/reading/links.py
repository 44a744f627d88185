"""The web addresses that an email links to, and the purpose of each, by its label, URL and sentence."""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from msgspec import Struct

from postroom_mail.html.page import WINDOW_BEFORE, WINDOW_BEHIND, Anchor, HtmlPage
from postroom_mail.languages.patterns import late, one_of
from postroom_mail.reading import link_words

if TYPE_CHECKING:
    from ahocorasick_rs import AhoCorasick

MAX_LINKS = 100
MAX_LINK_CHARS = 2_000
MAX_MENTIONS = 2

Purpose = Literal["verify", "signin", "unsubscribe", "other"]

_URL = re.compile(r"[hH][tT]{2}[pP][sS]?://[^\s<>\"\x00-\x20\x7f\\^`{|}]+")
# What nearly all addresses look like.
_USUAL_URL = re.compile(
    r"https?://[a-z0-9-]++(?:\.[a-z0-9-]++)*+(?::[0-9]{1,5}+)?+(?:[/?#][!-~]*+)?+", re.ASCII | re.IGNORECASE
)
_IGNORED_IN_URL = re.compile(r"[\t\r\n]")
_NOT_IN_URL = re.compile(r"[\x00-\x20\x7f-\xa0\ud800-\udfff]")
_SPOKEN: tuple[tuple[Purpose, re.Pattern[str]], ...] = (
    ("unsubscribe", late(lambda: one_of(link_words.UNSUBSCRIBING))),
    ("verify", late(lambda: one_of(link_words.VERIFYING))),
    ("signin", late(lambda: one_of(link_words.SIGNING_IN))),
)
_ADDRESS_OR_ACCOUNT = late(lambda: one_of(link_words.ADDRESS_OR_ACCOUNT))
_URL_WORD = re.compile(r"[a-z]+")
_URL_PURPOSES: tuple[tuple[Purpose, frozenset[str]], ...] = (
    ("unsubscribe", link_words.URLS_TO_UNSUBSCRIBE),
    ("verify", link_words.URLS_TO_VERIFY),
    ("signin", link_words.URLS_TO_SIGN_IN),
)
_URL_NAMES = frozenset().union(*(names for _, names in _URL_PURPOSES))
_SENTENCE_END = re.compile(r"[.!?](?=\s)|[\u3002\uff01\uff1f\u0964]|\n\s*\n")
# Labels that say nothing, so that the sentence decides: "here", "click here", "this link".
_POINTING = late(
    lambda: rf"(?<!\w)(?:{one_of(link_words.POINTING)})(?!\w)|{one_of(link_words.POINTING_JOINED)}"
)
_WORD = re.compile(r"\w+")
_FIRST_POINTING = frozenset(match[0] for words in link_words.POINTING if (match := _WORD.match(words)))
_SHORT_LABEL = 40
_WRITTEN_URL = re.compile(r"https?://|www\.|\S+\.\S+/")


class LinkDetail(Struct, frozen=True):
    url: str
    purpose: Purpose


def links(text: str, page: HtmlPage) -> tuple[str, ...]:
    """Return web addresses that the email links to, those of the HTML first, in order and without repeats."""
    return tuple(_by_url(text, page))


def link_details(text: str, page: HtmlPage, list_unsubscribe: Iterable[str] = ()) -> list[LinkDetail]:
    """Return the same addresses in the same order, each with its purpose."""
    leaving = frozenset(list_unsubscribe)
    return [
        LinkDetail(url, "unsubscribe" if url in leaving else _purpose_of(mentions))
        for url, mentions in _by_url(text, page).items()
    ]


def unsubscribe_targets(field: str) -> tuple[str, ...]:
    """Return the addresses in a List-Unsubscribe field (RFC 2369)."""
    return tuple(part.partition(">")[0].strip() for part in field.split("<", MAX_LINKS)[1:])


def _by_url(text: str, page: HtmlPage) -> dict[str, list[Anchor]]:
    found: dict[str, list[Anchor]] = {}
    for mentions in (page.anchors, _in_text(text) if "://" in text else ()):
        for mention in mentions:
            is_usual = _USUAL_URL.fullmatch(mention.url) is not None
            url = mention.url if is_usual else _as_followed(mention.url)
            known = found.get(url)
            if known is not None:
                if len(known) < MAX_MENTIONS:
                    known.append(mention)
            elif len(found) < MAX_LINKS and len(url) <= MAX_LINK_CHARS and (is_usual or _is_web_address(url)):
                found[url] = [mention]
    return found


def _as_followed(written: str) -> str:
    """Return the address as browsers follow it: without line breaks and blanks around it."""
    url = written[: 2 * MAX_LINK_CHARS]
    return (url if url.isprintable() else _IGNORED_IN_URL.sub("", url)).strip()


def _in_text(text: str) -> Iterator[Anchor]:
    read_to = 0
    for match in _URL.finditer(text):
        before = text[max(read_to, match.start() - WINDOW_BEFORE) : match.start()]
        behind = text[match.end() : match.end() + WINDOW_BEHIND].partition("://")[0]
        yield Anchor(_without_punctuation(match.group()), "", [before], [behind])
        read_to = match.end()


def _without_punctuation(url: str) -> str:
    """Return a link in running text without the punctuation of its sentence."""
    url = url[: MAX_LINK_CHARS + 1].rstrip(".,;:!?'*_~…")
    if url.endswith(")") and url.count("(") < url.count(")"):
        return url[:-1].rstrip(".,;:!?'")
    return url[:-1] if url.endswith("]") and "[" not in url else url


def _is_web_address(url: str) -> bool:
    if _USUAL_URL.fullmatch(url):
        return True
    if not url[:8].lower().startswith(("http://", "https://")) or _NOT_IN_URL.search(url):
        return False
    try:
        return bool(urlsplit(url).hostname)
    except ValueError:
        return False


def _purpose_of(mentions: list[Anchor]) -> Purpose:
    for mention in mentions:
        if (purpose := _purpose_of_anchor(mention)) != "other":
            return purpose
    return "other"


def _purpose_of_anchor(mention: Anchor) -> Purpose:
    label = " ".join(mention.label.lower().split())
    if label in link_words.LABELS_TO_VERIFY:
        around = f"{mention.before} {mention.behind} {mention.url}".lower()
        return "verify" if _ADDRESS_OR_ACCOUNT.search(around) else "other"
    if label and (spoken := _spoken(label)):
        return spoken
    if named := _named_by_url(mention.url):
        return named
    if _says_nothing(label):
        return _spoken(_sentence(mention.before, label, mention.behind)) or "other"
    return "other"


def _says_nothing(label: str) -> bool:
    if not label or _WRITTEN_URL.match(label):
        return True
    if len(label) > _SHORT_LABEL or (label.isascii() and _FIRST_POINTING.isdisjoint(_words(label))):
        return False
    return _POINTING.search(label) is not None


def _words(label: str) -> list[str]:
    words = label.split()
    return words if "".join(words).isalnum() else _WORD.findall(label)


def _spoken(words: str) -> Purpose | None:
    if words.isascii() and not _finder().find_matches_as_indexes(words):
        return None
    return next((purpose for purpose, pattern in _SPOKEN if pattern.search(words)), None)


@cache
def _finder() -> "AhoCorasick":
    """Finds a word of each ASCII phrase; checked first, in one pass, since few labels have any."""
    from ahocorasick_rs import AhoCorasick, Implementation

    phrases = (*link_words.UNSUBSCRIBING, *link_words.VERIFYING, *link_words.SIGNING_IN)
    longest = {max(phrase.split(), key=len) for phrase in phrases if phrase.isascii()}
    return AhoCorasick(sorted(longest), implementation=Implementation.DFA)


@cache
def _finder_in_urls() -> "AhoCorasick":
    from ahocorasick_rs import AhoCorasick, Implementation

    return AhoCorasick(sorted(_URL_NAMES), implementation=Implementation.DFA)


def _sentence(before: str, label: str, behind: str) -> str:
    """Return the sentence of the link; the one before it if the link is alone below."""
    start = [end.end() for end in _SENTENCE_END.finditer(before.rstrip())]
    own = (
        before[start[-1] :]
        if start and before[start[-1] :].strip()
        else before[start[-2] if len(start) > 1 else 0 :]
    )
    end = _SENTENCE_END.search(behind)
    return f"{own} {label} {behind[: end.start()] if end else behind}".lower()


def _named_by_url(url: str) -> Purpose | None:
    if url.isprintable():
        letters = url.lower().replace("-", "").replace("_", "")
        if not _finder_in_urls().find_matches_as_indexes(letters):
            return None
    words = _words_behind_host(url).lower()
    said = _URL_WORD.findall(words)
    if "-" in words or "_" in words:
        said += _URL_WORD.findall(words.replace("-", "").replace("_", ""))
    found = next((purpose for purpose, names in _URL_PURPOSES if not names.isdisjoint(said)), None)
    is_other = found == "verify" and not link_words.URLS_OF_OTHER_MATTERS.isdisjoint(said)
    return None if is_other else found


def _words_behind_host(url: str) -> str:
    """Return the beginning of path, query and fragment."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return f"{parts.path[:200]} {parts.query[:200]} {parts.fragment[:100]}"
