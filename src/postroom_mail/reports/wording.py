"""How servers say that an email did not arrive, or not yet; the words are in `words.txt`."""

from collections.abc import Iterable

from postroom_mail.languages.read import word_lists

_LISTS = word_lists("postroom_mail.reports", "words.txt")
PHRASES, DELAY, GIVEN_UP = _LISTS["failure"], _LISTS["delay"], _LISTS["given up"]


def says_failure(text: str) -> bool:
    lower = text.lower()
    return any(phrase in lower for phrase in PHRASES)


def says_delay(subject: str, words: str) -> bool:
    """Return whether it is a delay report. It also says what comes later, so its subject decides first."""
    if _first_place(DELAY, subject) <= min(_first_place(PHRASES, subject), len(subject) - 1):
        return True
    lower = "\n".join(line for line in words.split("\n") if not _is_echo(line, subject)).lower()
    return any(phrase in lower for phrase in DELAY) and not any(phrase in lower for phrase in GIVEN_UP)


def _first_place(phrases: Iterable[str], text: str) -> int:
    lower = text.lower()
    return min((lower.find(phrase) for phrase in phrases if phrase in lower), default=len(text))


def _is_echo(line: str, subject: str) -> bool:
    """Return whether it repeats the subject of the returned mail, which may mention any delay."""
    repeated = line.partition(":")[2].strip()
    return repeated != "" and repeated in subject
