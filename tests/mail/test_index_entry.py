"""The entry of the search index against one made word by word, in the plainest way, also at every limit."""

import random
from collections import Counter

import pytest

from postroom_mail.search import index_entry, tokens
from postroom_mail.search.index_entry import GAP, Searchable

EMAILS = 400
WORDS = "a a a the the of order invoice Straße café 東京都 แมว paid, paid. x-ray 42 ﬁne İstanbul".split()
LIMITS = {
    "SUBJECT_PLACES": 6,
    "SENDER_PLACES": 4,
    "RECIPIENT_PLACES": 9,
    "FILENAME_PLACES": 9,
    "TEXT_PLACES": 40,
    "FILE_PLACES": 30,
    "MAX_POSITIONS_OF_A_TOKEN": 7,
    "UNCOUNTED_PLACES": 25,
    "UNCOUNTED_CHARS": 60,
    "MAX_DISTINCT_TOKENS": 70,
    "MAX_READ_CHARS": 600,
}


class Plain:
    """One word after the other: its place, unless it has had too many, or the entry holds too much."""

    def __init__(self) -> None:
        self.places: list[str] = []
        self.behind: list[str] = []
        self.had: Counter[str] = Counter()
        self.known: set[str] = set()
        self.unread = index_entry.MAX_READ_CHARS

    def take(self, word: str) -> bool:
        if word not in self.known and len(self.known) < index_entry.MAX_DISTINCT_TOKENS:
            self.known.add(word)
        return word in self.known

    def add(self, part: str, limit: int, mark: str) -> None:
        text, self.unread = part[: self.unread], self.unread - len(part[: self.unread])
        words = [f"r{mark}{word}" for word in tokens.split(text)]
        placed, rest = words[: max(0, limit)], words[max(0, limit) :]
        for word in dict.fromkeys(placed):
            self.take(word)
        for word in placed:
            self.had[word] += 1
            is_placed = word in self.known and self.had[word] <= index_entry.MAX_POSITIONS_OF_A_TOKEN
            self.places.append(word if is_placed else GAP)
        for word in dict.fromkeys(rest):
            is_new = word not in self.known and word not in placed
            if is_new and self.take(word):
                self.behind.append(word)
        self.places += [GAP] if placed else []

    def add_all(self, parts: "list[str]", limit: int, mark: str) -> None:
        end = len(self.places) + limit
        for part in parts:
            self.add(part, end - len(self.places), mark)


def plain(mail: Searchable) -> Plain:
    made, places = Plain(), index_entry
    made.add(mail.subject, places.SUBJECT_PLACES, places.SUBJECT)
    made.add(mail.subject, places.SUBJECT_PLACES, places.ANYWHERE)
    made.add(mail.sender, places.SENDER_PLACES, places.SENDER)
    made.add(mail.sender, places.SENDER_PLACES, places.ANYWHERE)
    made.add_all([*mail.recipients], places.RECIPIENT_PLACES, places.RECIPIENTS)
    made.add_all([*mail.recipients], places.RECIPIENT_PLACES, places.ANYWHERE)
    made.add_all([*mail.filenames], places.FILENAME_PLACES, places.ANYWHERE)
    made.add(mail.text, places.TEXT_PLACES, places.ANYWHERE)
    made.add_all([*mail.file_texts], places.FILE_PLACES, places.ANYWHERE)
    return made


def invented(choose: random.Random) -> Searchable:
    def text(most: int) -> str:
        own = [f"w{choose.randrange(60)}" for _ in range(most // 3)]
        return " ".join(choose.choices(WORDS + own, k=choose.randrange(most)))

    return Searchable(
        subject=text(12),
        sender=text(8),
        recipients=[text(6) for _ in range(choose.randrange(4))],
        text=text(choose.choice((5, 40, 120))),
        filenames=[text(4) for _ in range(choose.randrange(3))],
        file_texts=[text(60) for _ in range(choose.randrange(3))],
    )


@pytest.mark.parametrize("limits", [{}, LIMITS], ids=["usual", "small"])
def test_an_entry_is_as_one_made_word_by_word(
    limits: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in limits.items():
        monkeypatch.setattr(index_entry, name, value)
    choose, behind = random.Random(51), 0
    for _ in range(EMAILS):
        mail = invented(choose)
        entry, wanted = index_entry.of_mail(mail, "r", ["s"]), plain(mail)
        assert entry.places == wanted.places, mail
        assert entry.behind == wanted.behind, mail
        behind += len(entry.behind)
    assert bool(behind) == bool(limits), "the limits are reached"
