"""Signs in subject and body of who or what wrote an email, if no header field shows it."""

import re

from msgspec import Struct

READ_HTML_CHARS = 40_000
FEWEST_TABLES = 3
FOOTER_CHARS = 1_200

# What people's mail clients leave in their HTML.
_WRITTEN_BY_PEOPLE = (
    "MsoNormal",
    "gmail_quote",
    "gmail_signature",
    "gmail_default",
    "Apple-Mail",
    "moz-cite",
)
_PRESENTATION = re.compile(r"role=[\"']presentation|<!--\[if (?:gte )?mso", re.IGNORECASE)
_PIXEL = re.compile(r"<img[^>]{0,400}?(?:width=[\"']?1[\"' ]|height=[\"']?1[\"' ])", re.IGNORECASE)
_DIVIDER = re.compile(r"\n(?:_{8,200}|-{2,200}|(?:=-){3,40}=?) *(?=\n)")
_ALERT = re.compile(
    r"\[?(?:alert|incident|warning|critical|problem|recovery|resolved)\b[\]:]"
    r"|(?:build|job|pipeline|deployment|backup)\b.{0,20}(?:failed|passed|succeeded|completed|report)"
    r"|cron <|\[(?:ticket|case|bug|wiki|jira)\b|\[#\d+\]|\[[A-Z]{2,10}-\d+\]"
    r"|(?:new voicemail|fax received|scan from|motion detected)\b",
    re.IGNORECASE,
)
_ANSWER = re.compile(
    r"\s{0,9}(?:re|aw|antw|sv|vs|odp|ynt|fw|fwd|wg|tr|rv|enc|r|i|回复|答复|转发|답장)\s?(?:\[\d+\])?\s?[:\uff1a]",
    re.IGNORECASE,
)


# "I", in the languages that write it; but not in the questions and links of letters that bring a code.
_FIRST_PERSON = re.compile(
    r"(?<![\w'\u2019.])(?:I(?:['\u2019](?:m|ve|ll|d))?|[Ii]ch|[Jj]e|[Jj]['\u2019]\w{1,20}|[Ii]k|[Jj]ag|[Jj]eg)\s(?=\w)"
)
_OF_A_LETTER = re.compile(
    r"\b(?:did|do|am|have|erhalte|bekomme|habe|suis|krijg|ontvang) (?:I|ich|je|ik)\b"
    r"|\b(?:I|ich|je|ik) (?:did|didn['\u2019]t|do|don['\u2019]t|habe|n['\u2019]ai|heb)\b"
)


class BodySigns(Struct, frozen=True):
    """`groups` are those of `phrases` that match the sender's own words."""

    groups: frozenset[str] = frozenset()
    is_alert: bool = False
    is_bulk: bool = False
    is_answer: bool = False
    has_code: bool = False
    has_unsubscribe_link: bool = False


NO_BODY_SIGNS = BodySigns()


def is_alert(subject: str) -> bool:
    """Return whether it is from a monitor, a build, a tracker or an office machine."""
    return _ALERT.match(subject.lstrip()) is not None


def is_answer(subject: str) -> bool:
    """Return whether it is a reply or a forward, as mail clients mark them."""
    return _ANSWER.match(subject) is not None


def is_bulk(html: str) -> bool:
    """Return whether it was made from a template: tables for the layout, or a picture of one pixel."""
    head = html[:READ_HTML_CHARS]
    if not head or any(mark in head for mark in _WRITTEN_BY_PEOPLE):
        return False
    tables = head.count("<table") + head.count("<TABLE")
    return tables >= FEWEST_TABLES or bool(_PRESENTATION.search(head) or _PIXEL.search(head))


def is_of_person(html: str, text: str) -> bool:
    """Return whether it is written by a person, or with a person's mail client; a code is then no sign."""
    if any(mark in html[:READ_HTML_CHARS] for mark in _WRITTEN_BY_PEOPLE):
        return True
    return _FIRST_PERSON.search(_OF_A_LETTER.sub("", text[:FOOTER_CHARS])) is not None


def footer(text: str) -> str:
    """Return the text below the last dividing line: the footer of a list, a signature."""
    tail = "\n" + text[-FOOTER_CHARS:]
    divided = _DIVIDER.split(tail)
    return divided[-1] if len(divided) > 1 else ""
