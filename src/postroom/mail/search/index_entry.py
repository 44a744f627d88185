"""What the index keeps of a mail: a row of tokens, written for FTS5 and for PostgreSQL's `tsvector`.

A `tsvector` counts 16,383 places, 256 of one token, in 1 MB. Both are given no more, so they answer alike.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct, field

from postroom.mail.search import tokens

# Every token begins with its realm and one of these, so that one realm's rows are never read for another's:
# how long a search takes tells nothing of them. A word of a mail holds letters and digits alone.
ANYWHERE, SUBJECT, SENDER, RECIPIENTS, SCOPE = "§", "¶", "←", "→", "¤"
GAP = "·"  # holds a place that nothing is found at: no phrase reaches over it

MAX_READ_CHARS = 400_000
MAX_PLACES = 16_381
LAST_PLACE = 16_383  # of all words behind the places: each is found, but stands beside nothing
MAX_PLACES_OF_A_TOKEN = 255
FEW_PLACES = MAX_PLACES_OF_A_TOKEN  # so few cannot hold too many of anything, and are not counted
MAX_DISTINCT_TOKENS = 30_000
MAX_DISTINCT_BYTES = 500_000
MAX_BYTES_OF_A_CHARACTER = 4
# Places for each part; the text of files gets what is left.
SUBJECT_PLACES, SENDER_PLACES, RECIPIENT_PLACES, FILENAME_PLACES = 256, 64, 512, 512
TEXT_PLACES_BESIDE_FILES = 7_000


class Searchable(Struct, frozen=True):
    """The parts of a mail that are looked in; names stand beside their addresses."""

    subject: str
    sender: str
    recipients: Sequence[str]
    text: str
    filenames: Sequence[str] = ()
    file_texts: Sequence[str] = ()


class IndexEntry(Struct):
    """Tokens in their places, and those behind the last place."""

    realm: str
    texts: list[str] = field(default_factory=list)  # of tokens in their places, a space between them
    place_count: int = 0
    text_chars: int = 0
    behind: list[str] = field(default_factory=list)
    scopes: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    distinct_bytes: int = 0
    unread_chars: int = MAX_READ_CHARS

    @property
    def places(self) -> list[str]:
        return " ".join(self.texts).split()

    def add(self, part: str, limit: int, mark: str) -> None:
        """At most `limit` places for this part, and a gap."""
        text = part[: self.unread_chars]
        self.unread_chars -= len(text)
        beginning = self.realm + mark
        words = tokens.split(text)
        room = max(0, min(limit, MAX_PLACES - self.place_count))
        if not words:
            return
        if not self.counts and len(words) <= room and self._has_room_for(words):
            self._put(beginning + f" {beginning}".join(words), len(words))
            return
        if not self.counts:
            self._count_places()
        found = [beginning + word for word in words]
        if room:
            self._place(found[:room])
        self.behind.extend([word for word in found[room:] if word not in self.counts and self._take(word, 0)])

    def _put(self, text: str, count: int) -> None:
        self.texts += (text, GAP)
        self.place_count += count + 1
        self.text_chars += len(text)

    def _has_room_for(self, words: list[str]) -> bool:
        """Whether all of them surely fit, whatever stands before them."""
        if self.place_count + len(words) <= FEW_PLACES:
            return True
        distinct = set(words)
        chars = self.text_chars + sum(map(len, distinct)) + len(distinct) * (len(self.realm) + 1)
        if chars > MAX_DISTINCT_BYTES // MAX_BYTES_OF_A_CHARACTER:
            return False
        most_of_one = len(words) - len(distinct) + 1
        if self.place_count + most_of_one > MAX_PLACES_OF_A_TOKEN:
            most_of_one = max(Counter(words).values())
        return self.place_count + most_of_one <= MAX_PLACES_OF_A_TOKEN

    def _count_places(self) -> None:
        self.counts = dict(Counter(self.places))
        self.counts.pop(GAP, None)
        self.distinct_bytes = len("".join(self.counts).encode())

    def _place(self, words: list[str]) -> None:
        counts, placed = self.counts, list[str]()
        for word in words:
            count = counts.get(word)
            if count is None:
                placed.append(word if self._take(word, 1) else GAP)
            elif count < MAX_PLACES_OF_A_TOKEN:
                counts[word] = count + 1
                placed.append(word)
            else:
                placed.append(GAP)
        self._put(" ".join(placed), len(placed))

    def _take(self, word: str, count: int) -> bool:
        bytes_after = self.distinct_bytes + len(word.encode())
        if bytes_after > MAX_DISTINCT_BYTES or len(self.counts) >= MAX_DISTINCT_TOKENS:
            return False
        self.counts[word], self.distinct_bytes = count, bytes_after
        return True


def of_mail(mail: Searchable, realm: str, scopes: Iterable[str]) -> IndexEntry:
    """The realm is what the mail belongs to and the scopes what it is in, all of `a-z0-9`."""
    entry = IndexEntry(realm, scopes=[realm + SCOPE + scope for scope in ("", *scopes)])
    entry.add(mail.subject, SUBJECT_PLACES, SUBJECT)
    entry.add(mail.subject, SUBJECT_PLACES, ANYWHERE)
    entry.add(mail.sender, SENDER_PLACES, SENDER)
    entry.add(mail.sender, SENDER_PLACES, ANYWHERE)
    _add_all(entry, mail.recipients, RECIPIENT_PLACES, RECIPIENTS)
    _add_all(entry, mail.recipients, RECIPIENT_PLACES, ANYWHERE)
    _add_all(entry, mail.filenames, FILENAME_PLACES, ANYWHERE)
    entry.add(mail.text, TEXT_PLACES_BESIDE_FILES if any(mail.file_texts) else MAX_PLACES, ANYWHERE)
    _add_all(entry, mail.file_texts, MAX_PLACES, ANYWHERE)
    return entry


def to_fts5(entry: IndexEntry) -> str:
    """For the one column of a table with `tokenize = 'ascii'`, which keeps every other character as it is."""
    behind = f" {GAP} ".join(entry.behind)
    return " ".join([*entry.texts, behind, GAP, *entry.scopes])


def to_tsvector(entry: IndexEntry) -> str:
    found: dict[str, list[str]] = {}
    for place, token in enumerate(entry.places, 1):
        found.setdefault(token, []).append(str(place))
    found.pop(GAP, None)
    for token in (*entry.behind, *entry.scopes):
        found.setdefault(token, []).append(str(LAST_PLACE))
    return " ".join([f"'{token}':{','.join(places)}" for token, places in found.items()])


def _add_all(entry: IndexEntry, parts: Iterable[str], limit: int, mark: str) -> None:
    end = entry.place_count + limit
    for part in parts:
        entry.add(part, end - entry.place_count, mark)
