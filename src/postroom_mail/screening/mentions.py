"""Whether an outgoing text contains a link or a network address: a URL of any scheme, an IP address with a
path or a port, or a bare domain name. In doubt it does; a phone number is none."""

import re
from collections.abc import Iterable

from postroom_mail.html.text import html_to_text
from postroom_mail.languages.folding import NO_WIDTH
from postroom_mail.mime import charset
from postroom_mail.reading.content_lines import unescaped

MOST_SEARCHED_BYTES = 1_000_000  # of all files; more counts as a link

# A scheme with something after its colon. Letters only: a time of day and a pair of numbers have none.
_URL = re.compile(
    r"(?<![a-z0-9+.-])[a-z][a-z0-9+.-]++:(?=[^\s:;,!\"'<>(){}|^`-])|mailto:|[a-z0-9+.-]:[/\\]{2}"
)
# HTML source also contains style rules, which look like schemes: only those that lead somewhere.
_WELL_KNOWN_URL = re.compile(
    r"(?<![a-z])(?:https?|ftps?|sftp|tel|callto|sms(?:to)?|mms|geo|maps|sips?|xmpp|im|irc|skype|facetime|whatsapp|viber"
    r"|tg|signal|slack|zoommtg|msteams|webcal|market|intent|itms(?:-apps)?|magnet|bitcoin|ethereum|lightning|ipfs"
    r"|javascript|vbscript|data|blob|file|view-source|news|nntp|wss?|ssh|git|ldaps?|gopher|steam|feed|upi)"
    r":(?=[^\s:;])|mailto:|[a-z0-9+.-]:[/\\]{2}"
)
_HOST_BEHIND_SLASHES = re.compile(r"[/\\]{2}[\w\[]")
# Four numbers, or fewer in forms that no phone number, date or version has; or an address in brackets.
_NUMBERS_WITH_MORE = re.compile(
    r"(?<![\w.])(?:(?:[0-9]{1,10}\.){3}[0-9]{1,10}|0x[0-9a-f]{1,8}(?:\.(?:0x)?[0-9a-f]{1,8}){0,3})(?:/|:[0-9]|[?#]\w)"
    r"|(?<![\w.+])(?:[0-9]{1,10}\.[0-9]{1,10}(?:\.[0-9]{1,10})?|[0-9]{8,10})(?:[/?#][a-z_~]|:[0-9]{2,5}(?![0-9.]))"
    r"|\[[0-9a-f:.]{2,50}\](?:/|:[0-9])"
)
# A dot between two labels, of which the second could be a top-level domain.
_DOT_OF_A_NAME = re.compile(r"[\w-]\.[^\W\d_]\w|[a-z0-9-][\u3002\uff0e\uff61][a-z]{2}")
_WORD_WITH_A_DOT = re.compile(
    r"(?<![\w.@\u3002\uff0e\uff61-])[\w@-]*+[.\u3002\uff0e\uff61][\w.@\u3002\uff0e\uff61-]*+"
)
_DOTS = re.compile(r"[.\u3002\uff0e\uff61]")
_TARGET = re.compile(
    r"\b(?:href|src|action|background|cite|poster|(?:image)?srcset|formaction|ping|longdesc|lowsrc|dynsrc|codebase)\s*+="
    r"|url\s*+\("
)
_DOCTYPE = re.compile(r"<!doctype[^<>]*+>")
# A file inside of a text: uuencode, yEnc, BinHex, an encrypted message.
_FILE_IN_TEXT = re.compile(
    r"^begin(?:-base64)? [0-7]{3,4} \S|^=ybegin |^\(This file must be converted with BinHex"
    r"|^-----BEGIN PGP MESSAGE",
    re.MULTILINE,
)
_FILE_IN_HTML = re.compile(r"data:[\w.+-]{1,100}/[\w.+-]{1,100}[;,]", re.IGNORECASE)
_SHOWN_FILES = (".html", ".htm", ".xhtml", ".ics", ".txt")
_CHARSET = re.compile(r"charset=([\w.:-]{1,40})")
_PROPERTY = re.compile(r"[\w-]{1,60}")
_FOLD = re.compile(rb"\r?\n[ \t]")
# Lines of a calendar that programs read and people do not see: a product's name looks like a host.
_UNSEEN_LINES = frozenset(
    "BEGIN END VERSION PRODID CALSCALE METHOD UID DTSTAMP DTSTART DTEND DUE DURATION SEQUENCE STATUS TRANSP"
    " CLASS PRIORITY RRULE RDATE EXDATE EXRULE RECURRENCE-ID CREATED LAST-MODIFIED COMPLETED PERCENT-COMPLETE"
    " TZID TZOFFSETFROM TZOFFSETTO TZNAME TRIGGER ACTION REPEAT REQUEST-STATUS ATTENDEE ORGANIZER".split()
)
# What programs read as ASCII: letters of full width and in circles, and signs, but none that ends a sentence
# in Chinese.
_LOOKS_LIKE = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F) if code != 0xFF0E}
_LOOKS_LIKE |= {0x24D0 + place: ord("a") + place for place in range(26)}
_LOOKS_LIKE |= {0x2024: ord("."), 0xFE52: ord("."), 0xFE55: ord(":"), 0xFE68: ord("\\")}


def mentions_a_link(text: str, html: str | None) -> bool:
    """Over the text, and the HTML as written and as read, so that none can hide one from the others."""
    if _contains_link(text, _URL):
        return True
    if html is None:
        return False
    written = _DOCTYPE.sub("", html.lower())
    if _TARGET.search(written) or _contains_link(written, _WELL_KNOWN_URL):
        return True
    return _contains_link(html_to_text(html), _URL)


def holds_a_file(text: str, html: str | None) -> bool:
    """Return whether a text has a file that some mail clients take out, or HTML one in a `data:` URL."""
    if _FILE_IN_TEXT.search(text.replace("\r", "")):
        return True
    return html is not None and _FILE_IN_HTML.search(html) is not None


def files_mention_a_link(files: Iterable[tuple[str, str, bytes]]) -> bool:
    """Return whether files that mail clients show with the text contain a link; other files are files.

    Each is a type with its charset, a name and the content. An email in a file always contains a link, since
    its header names hosts; more text than is searched counts as one too.
    """
    left = MOST_SEARCHED_BYTES
    for content_type, filename, content in files:
        kind, name = content_type.partition(";")[0].strip().lower(), filename.lower()
        if kind.startswith("message/") or name.endswith((".eml", ".url")):
            return True
        if not kind.startswith("text/") and not name.endswith(_SHOWN_FILES):
            continue
        left -= len(content)
        if left < 0 or _shown_file_mentions_a_link(kind, name, content_type, content):
            return True
    return False


def _shown_file_mentions_a_link(kind: str, name: str, content_type: str, content: bytes) -> bool:
    if kind == "text/calendar" or name.endswith(".ics"):
        return calendar_mentions_a_link(content)
    label = _CHARSET.search(content_type)
    text = charset.decode(content, label[1] if label else charset.UNDECLARED)
    return mentions_a_link(text, text if "<" in text else None)


def calendar_mentions_a_link(content: bytes) -> bool:
    """Over all that a calendar can show; the addresses of its people are no links."""
    if len(content) > MOST_SEARCHED_BYTES:
        return True
    lines = _FOLD.sub(b"", content).decode(errors="replace").splitlines()
    shown = "\n".join(map(_shown_of_line, lines))
    return mentions_a_link(shown, shown if "<" in shown else None)


def _shown_of_line(line: str) -> str:
    """Return what people may see of it. A line that is no property stays whole: some readers show it."""
    head, _, value = line.partition(":")
    name, _, parameters = head.partition(";")
    if name.strip().upper() in _UNSEEN_LINES:
        return line if "://" in line else ""
    return f"{parameters}\n{unescaped(value)}" if _PROPERTY.fullmatch(name) else line


def _contains_link(text: str, url: re.Pattern[str]) -> bool:
    """Search for a literal that the pattern requires before running it: a substring search is nearly free."""
    seen = _as_read(text)
    if ":" in seen and url.search(seen):
        return True
    if ("/" in seen or "\\" in seen) and _HOST_BEHIND_SLASHES.search(seen):
        return True
    return _has_numbers_with_more(seen) or _has_a_domain(seen)


def _as_read(text: str) -> str:
    seen = text.lower()
    return seen if seen.isascii() else NO_WIDTH.sub("", seen).translate(_LOOKS_LIKE)


def _has_numbers_with_more(seen: str) -> bool:
    return any(mark in seen for mark in "/:?#") and _NUMBERS_WITH_MORE.search(seen) is not None


def _has_a_domain(seen: str) -> bool:
    """An email address such as bob@example.com is no link."""
    if not _DOTS.search(seen) or not _DOT_OF_A_NAME.search(seen):
        return False
    words = (match[0] for match in _WORD_WITH_A_DOT.finditer(seen))
    return any(_DOT_OF_A_NAME.search(word) for word in words if "@" not in word.strip("@"))
