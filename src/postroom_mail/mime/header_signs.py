"""What the header fields of an email show of who or what wrote it."""

from msgspec import Struct

from postroom_mail.languages.read import word_lists
from postroom_mail.mime.headers import Headers

MAX_VALUE_CHARS = 200

_SUPPRESSED = frozenset(("all", "oof", "autoreply", "auto-reply"))
_LISTS = word_lists("postroom_mail.mime", "signs.txt")
_AUTO_REPLIES = frozenset(_LISTS["fields of automatic answers"])
_CAMPAIGNS = frozenset(_LISTS["fields of campaigns"])
_MACHINES = frozenset(_LISTS["fields of machines"])
_FIELDS_OF_SIGNS = frozenset((
    "auto-submitted", "precedence", "x-auto-response-suppress", "list-id", "list-post", "list-unsubscribe",
    "feedback-id", "x-feedback-id", *_AUTO_REPLIES, *_CAMPAIGNS, *_MACHINES,
))  # fmt: skip


class Signs(Struct, frozen=True):
    """What the header fields show of who or what wrote an email."""

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


def read_signs(fields: Headers) -> Signs:
    """Read the signs. An email written by a person has none of these fields."""
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
