"""The grammar of commands, `postroom NOUNS VERB`: other spellings, and the right word for a wrong one."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

import typer

# Each line is one verb; a noun has one of its words, and understands all of them.
VERBS = (
    ("list", "ls"),
    ("get", "show", "view"),
    ("create", "add", "new", "invite"),
    ("update", "change", "edit", "set", "modify"),
    ("delete", "remove", "revoke", "rm"),
)
# Phrases that are another command. The longest that fits counts.
PHRASES: dict[tuple[str, ...], tuple[str, ...]] = {
    ("calendars", "add"): ("calendar-events", "create"),
    ("calendars", "show"): ("calendar-events", "get"),
    ("calendars", "change"): ("calendar-events", "update"),
    ("calendars", "cancel"): ("calendar-events", "delete"),
    ("calendars", "respond"): ("calendar-events", "respond"),
    ("calendar-events", "cancel"): ("calendar-events", "delete"),
    ("profiles", "create"): ("login",),
    ("webhook", "list"): ("webhooks", "list"),
    ("webhook", "create"): ("webhooks", "create"),
    ("inboxes", "aliases", "list"): ("inboxes", "aliases"),
    ("inboxes", "aliases", "create"): ("inboxes", "add-alias"),
    ("inboxes", "aliases", "delete"): ("inboxes", "delete-alias"),
    ("threads", "notes", "list"): ("threads", "notes"),
    ("threads", "notes", "create"): ("threads", "note"),
    ("threads", "notes", "delete"): ("threads", "unnote"),
    ("threads", "follow-ups", "list"): ("threads", "follow-ups"),
    ("threads", "follow-ups", "delete"): ("threads", "unfollow"),
}
_LONGEST_PHRASE = 3
# What newcomers call our nouns, and verbs that they expect to stand alone.
SYNONYMS = {
    **dict.fromkeys(("mail", "mails", "email", "emails"), "messages"),
    **dict.fromkeys(("event", "events", "watch", "tail"), "listen"),
    **dict.fromkeys(("mailbox", "mailboxes", "addresses"), "inboxes"),
    **dict.fromkeys(("approve", "reject", "holds", "held"), "approvals"),
    **dict.fromkeys(("start", "run", "server"), "serve"),
    **dict.fromkeys(("limits", "quota", "quotas"), "budgets"),
    "tenants": "pods",
    "whoami": "status",
}
_PLURALS = {"inbox": "inboxes", "policy": "policies"}


def in_our_words(app: typer.Typer, arguments: Sequence[str]) -> list[str]:
    """Return the arguments with nouns and verbs spelled as the commands are; unknown words stay."""
    found, rest, group = list[str](), list(arguments), app
    while rest and (word := _known(rest[0], _names(group))) is not None:
        if not found and (rephrased := _rephrased([word, *rest[1:]])):
            return rephrased
        found.append(word)
        rest = rest[1:]
        below = [each.typer_instance for each in group.registered_groups if each.name == word]
        if not below or below[0] is None:
            break
        group = below[0]
    return [*found, *rest]


def _names(group: typer.Typer) -> set[str]:
    commands = {each.name for each in group.registered_commands}
    return {name for name in commands | {each.name for each in group.registered_groups} if name}


def _known(word: str, names: set[str]) -> str | None:
    return next((each for each in spellings(word) if each in names), None)


def spellings(word: str) -> Iterable[str]:
    """Yield the word, its plural, its singular, and the verbs that mean the same."""
    yield word
    yield _PLURALS.get(word, f"{word}s")
    yield word.removesuffix("s")
    for verbs in VERBS:
        if word in verbs:
            yield from verbs


def _rephrased(words: list[str]) -> list[str] | None:
    for spelled in (words, [_first_of(word) for word in words[:_LONGEST_PHRASE]]):
        for length in range(_LONGEST_PHRASE, 1, -1):
            if (phrase := PHRASES.get(tuple(spelled[:length]))) is not None:
                return [*phrase, *words[length:]]
    return None


def _first_of(word: str) -> str:
    """Return the word that commands use for this verb, else the word as it is."""
    return next((verbs[0] for verbs in VERBS if word in verbs), word)


def meant(words: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return what a wrong word may have meant: at most three close names, or VERB NOUN turned round."""
    word = words[0]
    is_verb = any(word in verbs for verbs in VERBS)
    if is_verb and len(words) > 1 and (noun := _known(words[1], set(names))):
        return [f"{noun} {_first_of(word)}"]
    if SYNONYMS.get(word) in names:
        return [SYNONYMS[word]]
    by_word = {spelled: name for name in names for spelled in spellings(name)}
    return list(dict.fromkeys(by_word[each] for each in get_close_matches(word, by_word)))
