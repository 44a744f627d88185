"""Features of an email for the junk filter: its words, word pairs, links and header, each hashed to a number.

No word is kept: a feature is one of 262,144 numbers, and many words share each of them. The text is also
seen in pieces, and HTML and plain text apart: good words added to junk hide less of it.
"""

import re
from array import array
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain, repeat
from sys import byteorder
from zlib import crc32

from msgspec import Struct

from postroom_mail.html.page import HtmlPage
from postroom_mail.languages.folding import NO_WIDTH, folded
from postroom_mail.mime.parse import ParsedMail

SIZE = 1 << 18
MAX_TEXT_CHARS = 3_000
MAX_TAIL_CHARS = 900  # of these, from the end of a longer text
MAX_SEEN_CHARS = 10_000  # at either end, to find so many that are visible
MAX_HTML_CHARS = 20_000
MAX_WORDS, MAX_WORDS_OF_TWO = 240, 160  # of each text
MAX_COMMON = 400
PIECE_WORDS = 120
MAX_HEAD_BYTES = 16_000
MAX_VALUE_WORDS = 12
MAX_LINKS = 40
MAX_GRAM_BYTES = 100
GRAM_BYTES = 4
LONG_WORD_BYTES = 24
CUT_BYTES = 6  # of text that has no spaces: two or three characters

_LOWER = int.from_bytes(array("I", [SIZE - 1] * 4_000).tobytes(), byteorder)
_KEPT = b"abcdefghijklmnopqrstuvwxyz0123456789$%!'" + bytes(range(0x80, 0x100))
_SPACED = bytes(each if each in _KEPT else 0x20 for each in bytes(range(256)).lower())
_SUBJECT, _SENDER, _LINK, _SIGN, _FIELD, _SUBJECT_GRAM, _SENDER_GRAM = (
    crc32(name)
    for name in (b"subject", b"sender", b"link", b"sign", b"field", b"subject gram", b"sender gram")
)
_GRAMS = [slice(at, at + GRAM_BYTES) for at in range(MAX_GRAM_BYTES)]
_HOST = re.compile(r"[A-Za-z0-9.@:%_-]{1,80}")
# The kinds of characters in a name that a program invented.
_SHAPE = str.maketrans(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", "a" * 26 + "A" * 26 + "0" * 10
)
_FIELD_LINE = re.compile(rb"([A-Za-z][A-Za-z0-9-]{1,40}):([^\r\n]{0,120})")
# These name the sender's program; of all other fields the name says enough.
_TELLING = frozenset((b"x-mailer", b"user-agent", b"content-type", b"mime-version", b"precedence"))
# Written by servers and filters on the way.
_ON_THE_WAY = re.compile(
    rb"arc-|authentication|delivered|dkim-|envelope|received|return-path|status"
    rb"|x-(?:envelope|junk|keywords|original|postroom|pyzor|rcpt|razor|scanned|sieve|spam|status|uid|virus)"
)


class Features(Struct, frozen=True):
    """Of an email: those of its header and form, and of each part of its text those of each piece.

    Each feature is there once: a piece has those that no piece before it has.
    """

    common: tuple[int, ...]
    parts: tuple[tuple[tuple[int, ...], ...], ...]

    @property
    def whole(self) -> tuple[int, ...]:
        """Return what is learned."""
        return (*self.common, *(each for part in self.parts for piece in part for each in piece))


def read_features(raw: bytes, mail: ParsedMail, page: HtmlPage) -> Features:
    """Read the features, HTML first: most readers show it, and agents the plain text."""
    shown = page.text if mail.body_html else mail.body_text
    subject, hosts = _words(mail.subject), _hosts(shown, page)
    signs = "\n".join(_signs(mail, shown, page, hosts)).encode("utf-8", "replace").split(b"\n")
    of_subject = list(map(crc32, subject, repeat(_SUBJECT)))
    common = {
        *map(crc32, signs, repeat(_SIGN)),
        *map(crc32, _field_parts(raw), repeat(_FIELD)),
        *map(crc32, _words(mail.from_addr), repeat(_SENDER)),
        *map(crc32, _link_parts(hosts), repeat(_LINK)),
        *map(crc32, subject[1:], of_subject),
        *of_subject,
        *_grams(mail.subject, _SUBJECT_GRAM),
        *_grams(mail.from_addr, _SENDER_GRAM),
    }
    numbers = _numbers(list(common)[:MAX_COMMON])
    if not (page.text and mail.body_text):
        return Features(tuple(numbers), (_pieces(page.text or mail.body_text, MAX_WORDS),))
    of_html = _pieces(page.text, MAX_WORDS_OF_TWO)
    seen = frozenset(chain.from_iterable(of_html))
    return Features(tuple(numbers), (of_html, _pieces(mail.body_text, MAX_WORDS_OF_TWO, seen)))


def _pieces(text: str, most_words: int, seen: frozenset[int] = frozenset()) -> tuple[tuple[int, ...], ...]:
    """Return the features of each piece that are not seen yet: words, and a word behind another."""
    words = _words_of(text, most_words)
    of_words = list(map(crc32, words))
    numbers = _numbers([*of_words, *map(crc32, words[1:], of_words)])
    single, pairs = list(dict.fromkeys(numbers[: len(words)])), list(dict.fromkeys(numbers[len(words) :]))
    if seen:
        single, pairs = ([each for each in kind if each not in seen] for kind in (single, pairs))
    if len(words) < 1.5 * PIECE_WORDS:
        return ((*single, *pairs),)
    of_half, pairs_of_half = len(single) // 2, len(pairs) // 2
    return (*single[:of_half], *pairs[:pairs_of_half]), (*single[of_half:], *pairs[pairs_of_half:])


def _numbers(hashes: list[int]) -> list[int]:
    """Return the lower bits of each hash, all at once: one by one would take three times as long."""
    lower = int.from_bytes(array("I", hashes).tobytes(), byteorder) & _LOWER
    return array("I", lower.to_bytes(4 * len(hashes), byteorder)).tolist()


def _words_of(text: str, most: int) -> list[bytes]:
    """Return the words at the beginning, and at the end of a long text."""
    if len(text) > MAX_TEXT_CHARS:
        start, end = text, text
        if not text.isascii():  # what nobody sees must not fill the part that is read
            start, end = (NO_WIDTH.sub("", each) for each in (text[:MAX_SEEN_CHARS], text[-MAX_SEEN_CHARS:]))
        text = f"{start[: MAX_TEXT_CHARS - MAX_TAIL_CHARS]} {end[-MAX_TAIL_CHARS:]}"
    words = _words(text)
    return words if len(words) <= most else words[: most - PIECE_WORDS] + words[-PIECE_WORDS:]


def _words(text: str) -> list[bytes]:
    """Return words in small letters; of disguised ones what they look like."""
    lower = text if text.isascii() else folded(NO_WIDTH.sub("", text))
    words = lower.encode("utf-8", "replace").translate(_SPACED).split()
    if words and max(map(len, words)) > LONG_WORD_BYTES:
        words = [piece for word in words for piece in _cut(word)]
    return words


def _cut(word: bytes) -> list[bytes]:
    if len(word) <= LONG_WORD_BYTES:
        return [word]
    return [word[start : start + CUT_BYTES] for start in range(0, min(len(word), 3_000), CUT_BYTES)]


def _field_parts(raw: bytes) -> set[bytes]:
    """Return the names of the header fields that the sender wrote, and the words of some of them."""
    found = set()
    for line in raw[: _head_end(raw)].split(b"\n"):
        match = _FIELD_LINE.match(line)
        if match is None:
            continue
        name = match[1].lower()
        if not _is_on_the_way(name):
            found.add(name)
            if name in _TELLING:
                found.update(
                    name + word for word in match[2].lower().translate(_SPACED).split()[:MAX_VALUE_WORDS]
                )
    return found


@lru_cache(1_000)
def _is_on_the_way(name: bytes) -> bool:
    return _ON_THE_WAY.match(name) is not None


def _head_end(raw: bytes) -> int:
    ends = [at for end in (b"\n\n", b"\r\n\r\n") if (at := raw.find(end, 0, MAX_HEAD_BYTES)) >= 0]
    return min(ends, default=min(len(raw), MAX_HEAD_BYTES))


def _hosts(text: str, page: HtmlPage) -> list[str]:
    """Return the host of each link, in HTML or in the text."""
    urls = [anchor.url[:300].partition("//")[2] for anchor in page.anchors[:MAX_LINKS]]
    urls += text[:MAX_TEXT_CHARS].split("://", MAX_LINKS)[1:]
    found = [match[0].lower() for url in urls if (match := _HOST.match(url))]
    return list(dict.fromkeys(found))[:MAX_LINKS]


def _link_parts(hosts: Sequence[str]) -> set[bytes]:
    """Return each host, the domain above it, and the top of that."""
    found = set()
    for host in hosts:
        names = host.split(".")
        found |= {host, ".".join(names[-2:]), names[-1]}
    return {each.encode() for each in found}


def _grams(text: str, kind: int) -> Iterator[int]:
    """Return each four bytes: words with a letter more or less still have most of them."""
    raw = text[:MAX_GRAM_BYTES].lower().encode("utf-8", "replace")[:MAX_GRAM_BYTES]
    return map(crc32, map(raw.__getitem__, _GRAMS[: max(0, len(raw) - GRAM_BYTES + 1)]), repeat(kind))


def _signs(mail: ParsedMail, shown: str, page: HtmlPage, hosts: Sequence[str]) -> list[str]:
    """Return what the form of an email shows, each as a word."""
    html, subject = mail.body_html[:MAX_HTML_CHARS].lower(), mail.subject
    local, _, sender_domain = mail.from_address.rpartition("@")
    above = ".".join(sender_domain.split(".")[-2:])
    signs = [
        f"from {mail.from_address[:100]}",
        f"domain {sender_domain[:100]}",
        f"local {local[:16].translate(_SHAPE)}",
        f"id form {mail.message_id[1:17].translate(_SHAPE)}",
        f"tail {subject[-80:].rpartition(' ')[2][:16].translate(_SHAPE)}",
        f"subject {len(subject).bit_length()} {'?' in subject} {'$' in subject} {subject.isascii()}",
        f"named {mail.from_addr[:1] not in ('', '<', mail.from_address[:1])} {mail.from_addr.isascii()}",
        f"reply {bool(mail.reply_to)} {any(sender_domain in each.address for each in mail.reply_to)}",
        f"to {len(mail.header_to).bit_length()} {'undisclosed' in mail.header_to[:60].lower()}",
        f"dollars {shown.count('$', 0, MAX_TEXT_CHARS).bit_length()}",
        f"comments {html.count('<!--').bit_length()}",
        f"tags in text {'<font' in mail.body_text[:2_000].lower()} {'<html' in mail.body_text[:500].lower()}",
        f"own {any(host.endswith(above) for host in hosts) if above else None} {bool(hosts)}",
        f"hosts {len(hosts).bit_length()} {any('%' in host or '@' in host for host in hosts)}",
        f"numbers {any(host.replace('.', '').isdigit() for host in hosts)}",
        f"links {len(page.anchors).bit_length()}",
        f"hidden {len(page.hidden).bit_length()}",
        f"pictures {html.count('<img').bit_length()}",
        f"fonts {html.count('<font').bit_length()}",
        f"tables {html.count('<table').bit_length()}",
        f"length {len(shown).bit_length()}",
        f"recipients {len(mail.to).bit_length()} {len(mail.cc).bit_length()}",
        f"exclaims {shown.count('!').bit_length()}",
        f"loud {sum(map(str.isupper, subject)) * 4 // (len(subject) or 1)}",
        f"digits {sum(map(str.isdigit, local[:100]))}",
        f"id {mail.message_id.rpartition('@')[2].rstrip('>') == sender_domain} {not mail.message_id}",
        f"answer {bool(mail.in_reply_to)} {bool(mail.references)} {subject[:3].lower() == 're:'}",
        f"forms {bool(mail.body_text)} {bool(html)} {'<form' in html} {'<script' in html}",
        f"top {sender_domain.rpartition('.')[2]}",
        f"list {mail.signs.is_of_list} {mail.signs.has_unsubscribe} {mail.signs.precedence}",
        f"campaign {mail.signs.is_of_campaign} {mail.signs.has_feedback_id} {mail.signs.is_of_machine}",
        f"error {bool(mail.parse_error)} {not mail.subject} {not mail.from_address}",
    ]
    return signs + [f"file {each.content_type}" for each in mail.attachments[:10]]
