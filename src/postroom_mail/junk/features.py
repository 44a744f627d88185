"""Features of an email for the junk filter: its words, word pairs, links and header, each hashed to a number.

No word is kept: a feature is one of 262,144 numbers, and many words share each of them.
"""

import re
from itertools import islice, repeat
from zlib import crc32

from postroom_mail.html.page import HtmlPage
from postroom_mail.mime.parse import ParsedMail

SIZE = 1 << 18
MAX_FEATURES = 800
MAX_TEXT_CHARS = 6_000
MAX_HTML_CHARS = 20_000
MAX_WORDS = 450
MAX_PAIRS = 300
MAX_HEAD_BYTES = 16_000
MAX_VALUE_WORDS = 12
MAX_LINKS = 40
LONG_WORD_BYTES = 24
PIECE_BYTES = 6  # of text that has no spaces: two or three characters

_MASK = SIZE - 1
_masked = _MASK.__and__
_KEPT = b"abcdefghijklmnopqrstuvwxyz0123456789$%!'" + bytes(range(0x80, 0x100))
_SPACED = bytes(each if each in _KEPT else 0x20 for each in range(256))
_SUBJECT, _SENDER, _LINK, _SIGN, _FIELD = (
    crc32(name) for name in (b"subject", b"sender", b"link", b"sign", b"field")
)
_FIELD_LINE = re.compile(rb"^([A-Za-z][A-Za-z0-9-]{1,40}):([^\r\n]{0,120})", re.MULTILINE)
# These name the sender's program; of all other fields the name says enough.
_TELLING = frozenset((b"x-mailer", b"user-agent", b"content-type", b"mime-version", b"precedence"))
# Written by servers and filters on the way.
_ON_THE_WAY = re.compile(
    rb"arc-|authentication|delivered|dkim-|envelope|received|return-path|status"
    rb"|x-(?:envelope|junk|keywords|original|postroom|pyzor|rcpt|razor|scanned|sieve|spam|status|uid|virus)"
)


def features(raw: bytes, mail: ParsedMail, shown: str, page: HtmlPage) -> tuple[int, ...]:
    """Return the features of an email, each once. `shown` is the text that its reader sees."""
    text, subject = _words(shown[:MAX_TEXT_CHARS]), _words(mail.subject)
    of_text, of_subject = list(map(crc32, text)), list(map(crc32, subject, repeat(_SUBJECT)))
    found = {crc32(sign.encode(), _SIGN) & _MASK for sign in _signs(mail, shown, page)}
    found.update(crc32(part, _FIELD) & _MASK for part in _field_parts(raw))
    found.update(crc32(word, _SENDER) & _MASK for word in _words(mail.from_addr))
    found.update(crc32(part, _LINK) & _MASK for part in _link_parts(page))
    found.update(map(_masked, of_subject))
    found.update(map(_masked, map(crc32, subject[1:], of_subject)))
    found.update(map(_masked, of_text))
    found.update(map(_masked, map(crc32, text[1:MAX_PAIRS], of_text)))  # a word behind another
    return tuple(islice(found, MAX_FEATURES))


def _words(text: str) -> list[bytes]:
    words = text.lower().encode("utf-8", "replace").translate(_SPACED).split()[:MAX_WORDS]
    if words and max(map(len, words)) > LONG_WORD_BYTES:
        words = [piece for word in words for piece in _pieces(word)][:MAX_WORDS]
    return words


def _pieces(word: bytes) -> list[bytes]:
    if len(word) <= LONG_WORD_BYTES:
        return [word]
    return [word[start : start + PIECE_BYTES] for start in range(0, min(len(word), 3_000), PIECE_BYTES)]


def _field_parts(raw: bytes) -> set[bytes]:
    """Return the names of the header fields that the sender wrote, and the words of some of them."""
    found = set()
    for match in _FIELD_LINE.finditer(raw, 0, _head_end(raw)):
        name = match[1].lower()
        if not _ON_THE_WAY.match(name):
            found.add(name)
            if name in _TELLING:
                found.update(
                    name + word for word in match[2].lower().translate(_SPACED).split()[:MAX_VALUE_WORDS]
                )
    return found


def _head_end(raw: bytes) -> int:
    ends = [at for end in (b"\n\n", b"\r\n\r\n") if (at := raw.find(end, 0, MAX_HEAD_BYTES)) >= 0]
    return min(ends, default=min(len(raw), MAX_HEAD_BYTES))


def _link_parts(page: HtmlPage) -> set[bytes]:
    """Return the host of each link, and the domain above it."""
    found = set()
    for anchor in page.anchors[:MAX_LINKS]:
        host = anchor.url[:300].lower().partition("//")[2].partition("/")[0].encode("utf-8", "replace")
        found |= {host, b".".join(host.split(b".")[-2:])}
    return found


def _signs(mail: ParsedMail, shown: str, page: HtmlPage) -> list[str]:
    """Return what the form of an email shows, each as a word."""
    html, subject = mail.body_html[:MAX_HTML_CHARS].lower(), mail.subject
    sender_domain = mail.from_address.rpartition("@")[2]
    signs = [
        f"links {len(page.anchors).bit_length()}",
        f"hidden {len(page.hidden).bit_length()}",
        f"pictures {html.count('<img').bit_length()}",
        f"fonts {html.count('<font').bit_length()}",
        f"tables {html.count('<table').bit_length()}",
        f"length {len(shown).bit_length()}",
        f"recipients {len(mail.to).bit_length()} {len(mail.cc).bit_length()}",
        f"exclaims {shown.count('!').bit_length()}",
        f"loud {sum(map(str.isupper, subject)) * 4 // (len(subject) or 1)}",
        f"digits {sum(map(str.isdigit, mail.from_address.partition('@')[0]))}",
        f"id {mail.message_id.rpartition('@')[2].rstrip('>') == sender_domain} {not mail.message_id}",
        f"answer {bool(mail.in_reply_to)} {bool(mail.references)} {subject[:3].lower() == 're:'}",
        f"forms {bool(mail.body_text)} {bool(html)} {'<form' in html} {'<script' in html}",
        f"top {sender_domain.rpartition('.')[2]}",
        f"list {mail.signs.is_of_list} {mail.signs.has_unsubscribe} {mail.signs.precedence}",
        f"campaign {mail.signs.is_of_campaign} {mail.signs.has_feedback_id} {mail.signs.is_of_machine}",
        f"error {bool(mail.parse_error)} {not mail.subject} {not mail.from_address}",
    ]
    return signs + [f"file {each.content_type}" for each in mail.attachments[:10]]
