"""Mails of made-up words, as unevenly used as those of a language."""

import copy
import functools
import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from postroom import ids
from postroom.mailbox import threads
from postroom.mailbox.inboxes import Inbox
from postroom.mailbox.messages import RECEIVED, NewMessage
from postroom.mailbox.threads import Thread
from tests.filled_inbox import document

VOWELS, CONSONANTS = "aeiou", "bcdfghklmnprstvw"
WORDS = 40_000
NAMES = 2_000
WORDS_OF_BOOK = 250_000  # every mail is a piece of it, so that phrases come again as they do in a language


@dataclass(slots=True)
class Writer:
    random: random.Random
    words: list[str] = field(init=False)
    weights: list[float] = field(init=False)
    book: list[str] = field(init=False)

    def __post_init__(self) -> None:
        self.words = list(dict.fromkeys(self._make() for _ in range(WORDS * 2)))[:WORDS]
        total = 0.0
        self.weights = [total := total + 1 / (rank + 3) for rank in range(len(self.words))]
        self.book = self._some(WORDS_OF_BOOK)

    def _make(self) -> str:
        syllables = self.random.choices((1, 2, 3, 4), (1, 4, 4, 1))[0]
        return "".join(
            self.random.choice(CONSONANTS) + self.random.choice(VOWELS) for _ in range(syllables)
        ) + self.random.choice(("", "", "n", "s", "r"))

    def _some(self, count: int) -> list[str]:
        return self.random.choices(self.words, cum_weights=self.weights, k=count)

    def subject(self) -> str:
        return " ".join(self._some(self.random.randint(2, 8)))

    def text(self) -> str:
        """About 900 characters."""
        return " ".join(self._piece(self.random.randint(40, 260)))

    def _piece(self, count: int) -> list[str]:
        start = self.random.randrange(len(self.book) - count)
        return self.book[start : start + count]

    def sender(self) -> str:
        name = self.name()
        return f"{name.title()} <{name}@{self.words[self.random.randrange(500)]}.example>"

    def name(self) -> str:
        return self.words[-1 - self.random.randrange(NAMES)]

    def word(self) -> str:
        return self._some(1)[0]

    def long_word(self) -> str:
        return next(word for word in iter(self.word, None) if len(word) > 3)

    def phrase(self) -> str:
        return " ".join(self._piece(2))


def writer_of(language: int) -> Writer:
    """One that begins at the same place each time."""
    writer = copy.copy(_first_writer_of(language))
    writer.random = copy.copy(writer.random)
    return writer


@functools.cache
def _first_writer_of(language: int) -> Writer:
    return Writer(random.Random(language))


def new_mails(
    writer: Writer, owners: Sequence[Inbox], count: int, now: int
) -> list[tuple[Thread, NewMessage]]:
    """Each in a thread of its own, in any of the inboxes."""
    return [_new_mail(writer, writer.random.choice(owners), now) for _ in range(count)]


def _new_mail(writer: Writer, inbox: Inbox, now: int) -> tuple[Thread, NewMessage]:
    thread, text = threads.new(inbox, "bench", is_read=True, now=now), writer.text()
    written = replace(
        document(inbox.id, inbox.address),
        id=ids.new(ids.MESSAGE, now),
        thread_id=thread.id,
        from_addr=writer.sender(),
        subject=writer.subject(),
        body_text=text,
        reply_text=text,
    )
    return thread, NewMessage(written, RECEIVED, "a@example.com", False, b"", None, now, size_bytes=0)
