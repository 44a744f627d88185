"""Phrases of machines and bulk senders, by group, in the form that is searched for."""

from postroom_mail.languages.folding import apart, folded
from postroom_mail.languages.read import languages

# automated: "do not reply to this email"; transaction: an order, a parcel, an account; promotion: what sells;
# list: the footer of a mailing list; reply: the subject of an automatic answer.
GROUPS = ("automated", "transaction", "promotion", "list", "reply")


def _by_phrase() -> dict[str, str]:
    phrases: dict[str, str] = {}
    for language in languages():
        for group in GROUPS:
            for phrase in language.words(f"kinds: {group}"):
                words = apart(folded(phrase))
                phrases[words if language.is_joined else f" {words} "] = group
    return phrases


BY_PHRASE = _by_phrase()
