"""The kind of an email, and whether a program may answer it: by its header fields, then by its body."""

import re
import unicodedata
from functools import lru_cache
from typing import Literal, get_args

from msgspec import Struct

from postroom_mail.languages.read import word_lists
from postroom_mail.mime.header_signs import MAX_VALUE_CHARS, Signs
from postroom_mail.reading.body_signs import NO_BODY_SIGNS, BodySigns

Category = Literal["personal", "automated", "marketing", "bounce"]
CATEGORIES: tuple[Category, ...] = get_args(Category)

_BULK = frozenset(("bulk", "list", "junk", "auto_reply"))
_LISTS = word_lists("postroom_mail.mime", "signs.txt")
_BOUNCERS = frozenset(("mailerdaemon", "maildaemon", "postmaster", "mailsubsystem", "mdaemon"))
_MACHINE_NAMES = frozenset(_LISTS["machines"])
_MARKETING_NAMES = frozenset(_LISTS["marketing"])
_LIST_PROGRAMS = ("request", "listadmin", "listowner")
_MARKS = re.compile(r"[\W_]+")
_NO_REPLY_LETTERS = tuple(_MARKS.sub("", words) for words in _LISTS["no reply"])


class Kind(Struct, frozen=True):
    category: Category
    auto_replyable: bool


def categorize(
    signs: Signs,
    *,
    from_address: str,
    mail_from: str | None = None,
    report_type: str = "",
    is_bounce: bool = False,
    body: BodySigns = NO_BODY_SIGNS,
) -> Kind:
    """Return the kind. `mail_from` is None without an envelope; `is_bounce`: a report was found in it."""
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
    """Return the category if the fields show nothing: older software and small services write none."""
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
    """Return whether it is mail to many with an unsubscribe option.

    Mail of a discussion list or a machine is not.
    """
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
    """Return the part before the "@" in plain letters and digits: No-Reply_42 is noreply42."""
    local = unicodedata.normalize("NFKC", address[:MAX_VALUE_CHARS].rpartition("@")[0]).lower()
    plain = local.partition("+")[0] if not local.startswith("+") else local
    decomposed = unicodedata.normalize("NFD", plain) if plain.isascii() or _is_latin(plain) else plain
    return _MARKS.sub("", decomposed)


def _is_latin(text: str) -> bool:
    return all(ord(letter) < 0x250 for letter in text)


def is_no_reply(name: str) -> bool:
    return any(map(name.__contains__, _NO_REPLY_LETTERS))
