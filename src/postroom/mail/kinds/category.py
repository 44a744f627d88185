"""The kind of a mail, and whether a program may answer it: by its header fields, then by its body."""

import re
import unicodedata
from functools import lru_cache
from typing import Literal, get_args

from msgspec import Struct

from postroom.mail.headers import Headers
from postroom.mail.kinds.body_signs import NO_BODY_SIGNS, BodySigns
from postroom.mail.languages.read import word_lists

Category = Literal["personal", "automated", "marketing", "bounce"]
CATEGORIES: tuple[Category, ...] = get_args(Category)

MAX_VALUE_CHARS = 200

_BULK = frozenset(("bulk", "list", "junk", "auto_reply"))
_SUPPRESSED = frozenset(("all", "oof", "autoreply", "auto-reply"))
_LISTS = word_lists("postroom.mail.kinds", "signs.txt")
_AUTO_REPLIES = frozenset(_LISTS["fields of automatic answers"])
_CAMPAIGNS = frozenset(_LISTS["fields of campaigns"])
_MACHINES = frozenset(_LISTS["fields of machines"])
_FIELDS_OF_SIGNS = frozenset((
    "auto-submitted", "precedence", "x-auto-response-suppress", "list-id", "list-post", "list-unsubscribe",
    "feedback-id", "x-feedback-id", *_AUTO_REPLIES, *_CAMPAIGNS, *_MACHINES,
))  # fmt: skip
_BOUNCERS = frozenset(("mailerdaemon", "maildaemon", "postmaster", "mailsubsystem", "mdaemon"))
_MACHINE_NAMES = frozenset(_LISTS["machines"])
_MARKETING_NAMES = frozenset(_LISTS["marketing"])
_LIST_PROGRAMS = ("request", "listadmin", "listowner")
_MARKS = re.compile(r"[\W_]+")
_NO_REPLY_LETTERS = tuple(_MARKS.sub("", words) for words in _LISTS["no reply"])


class Signs(Struct, frozen=True):
    """What the header fields show of who or what wrote a mail."""

    auto_submitted: str = ""
    precedence: str = ""
    suppresses_replies: bool = False
    is_auto_reply: bool = False
    is_of_list: bool = False
    has_list_post: bool = False
    has_unsubscribe: bool = False
    has_feedback_id: bool = False
    is_of_campaign: bool = False
    is_of_machine: bool = False


NO_SIGNS = Signs()


class Kind(Struct, frozen=True):
    category: Category
    auto_replyable: bool


def read_signs(fields: Headers) -> Signs:
    """A mail written by a person has none of these fields."""
    if _FIELDS_OF_SIGNS.isdisjoint(fields.fields):
        return NO_SIGNS
    return Signs(
        auto_submitted=_word(fields.text("auto-submitted")),
        precedence=_word(fields.text("precedence")),
        suppresses_replies=_suppresses(fields.text("x-auto-response-suppress")),
        is_auto_reply=not _AUTO_REPLIES.isdisjoint(fields.fields),
        is_of_list=fields.count("list-id") > 0,
        has_list_post=fields.count("list-post") > 0 and _word(fields.text("list-post")) != "no",
        has_unsubscribe=fields.count("list-unsubscribe") > 0,
        has_feedback_id=fields.count("feedback-id") > 0 or fields.count("x-feedback-id") > 0,
        is_of_campaign=not _CAMPAIGNS.isdisjoint(fields.fields),
        is_of_machine=not _MACHINES.isdisjoint(fields.fields),
    )


def _word(value: str) -> str:
    words = value[:MAX_VALUE_CHARS].partition(";")[0].lower().split()
    return words[0] if words else ""


def _suppresses(value: str) -> bool:
    words = value[:MAX_VALUE_CHARS].lower().replace(",", " ").replace(";", " ").split()
    return not _SUPPRESSED.isdisjoint(words)


def categorize(
    signs: Signs,
    *,
    from_address: str,
    mail_from: str | None = None,
    report_type: str = "",
    is_bounce: bool = False,
    body: BodySigns = NO_BODY_SIGNS,
) -> Kind:
    """`mail_from` is None for a mail without an envelope; `is_bounce`: a report was found in it."""
    name = local_name(from_address)
    if is_bounce or report_type == "delivery-status" or (not mail_from and name in _BOUNCERS):
        return Kind("bounce", False)
    if _is_marketing(signs, name):
        return Kind("marketing", False)
    if _is_automated(signs, name) or mail_from == "" or report_type:
        return Kind("automated", False)
    category = _by_body(body)
    is_answerable = category == "personal" and from_address != "" and not body.has_unsubscribe_link
    return Kind(category, is_answerable)


def _by_body(body: BodySigns) -> Category:
    """For a mail whose fields show nothing: older programs and small services write none."""
    groups = body.groups
    if "reply" in groups or "list" in groups or "automated" in groups or body.has_code:
        return "automated"
    if body.is_answer:
        return "personal"
    if body.is_alert or ("transaction" in groups and (body.is_bulk or body.has_unsubscribe_link)):
        return "automated"
    if body.has_unsubscribe_link or ("promotion" in groups and body.is_bulk):
        return "marketing"
    return "automated" if body.is_bulk else "personal"


def _is_marketing(signs: Signs, name: str) -> bool:
    """Mail to many with an unsubscribe option, unless a discussion list or a machine sends it."""
    if (
        signs.auto_submitted not in ("", "no")
        or signs.has_list_post
        or signs.is_of_machine
        or signs.is_auto_reply
    ):
        return False
    if signs.has_unsubscribe:
        return signs.precedence != "list" or signs.has_feedback_id or signs.is_of_campaign
    return signs.is_of_campaign and (signs.precedence == "bulk" or name in _MARKETING_NAMES)


def _is_automated(signs: Signs, name: str) -> bool:
    return (
        signs.auto_submitted not in ("", "no")
        or signs.precedence in _BULK
        or signs.suppresses_replies
        or signs.is_auto_reply
        or signs.is_of_list
        or signs.has_feedback_id
        or signs.is_of_campaign
        or signs.is_of_machine
        or name in _BOUNCERS
        or name in _MACHINE_NAMES
        or name.endswith(_LIST_PROGRAMS)
        or is_no_reply(name)
    )


@lru_cache(maxsize=1_024)
def local_name(address: str) -> str:
    """The part before the "@" in plain letters and digits: No-Reply_42 is noreply42."""
    local = unicodedata.normalize("NFKC", address[:MAX_VALUE_CHARS].rpartition("@")[0]).lower()
    plain = local.partition("+")[0] if not local.startswith("+") else local
    decomposed = unicodedata.normalize("NFD", plain) if plain.isascii() or _is_latin(plain) else plain
    return _MARKS.sub("", decomposed)


def _is_latin(text: str) -> bool:
    return all(ord(letter) < 0x250 for letter in text)


def is_no_reply(name: str) -> bool:
    return any(map(name.__contains__, _NO_REPLY_LETTERS))
