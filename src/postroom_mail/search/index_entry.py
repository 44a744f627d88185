"""The index entry of an email: a row of tokens, written for FTS5 and for PostgreSQL's `tsvector`.

A `tsvector` holds 16,383 positions, 256 of one token, in 1 MB. Both get no more, so their results are equal.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache

from msgspec import Struct, field

from postroom_mail.search import tokens

# Every token begins with its realm and one of these, so that one realm's rows are never read for another's:
# the duration of a search reveals nothing of them. A word of an email holds only letters and digits.
ANYWHERE, SUBJECT, SENDER, RECIPIENTS, SCOPE = "_", "=", "<", ">", "@"
GAP = "."  # takes a position at which nothing is found: no phrase spans it
# All are ASCII: a text of wider characters would be copied twice on its way to SQLite.
FTS5_TOKENIZER = f"ascii tokenchars '{ANYWHERE}{SUBJECT}{SENDER}{RECIPIENTS}{SCOPE}{GAP}'"

MAX_READ_CHARS = 400_000
LAST_POSITION = 16_383  # shared by all words without a position of their own: found, but not in phrases
BYTES_OF_A_POSITION = 2
MAX_POSITIONS_OF_A_TOKEN = 255
# So much stays within what may be distinct: folding gives at most two characters, of four bytes, for one.
UNCOUNTED_PLACES, UNCOUNTED_CHARS = 4_300, 20_000
MAX_DISTINCT_TOKENS = 30_000
MAX_DISTINCT_BYTES = 500_000
SHORT_CHARS, SHORT_TEXTS = 100, 2_048  # names and addresses are the same in many emails
# Positions for each part, together fewer than LAST_POSITION. A position costs about three bytes.
SUBJECT_PLACES, SENDER_PLACES, RECIPIENT_PLACES, FILENAME_PLACES = 256, 64, 512, 512
TEXT_PLACES, FILE_PLACES = 4_000, 4_000


class Searchable(Struct, frozen=True):
    """The parts of an email that are searched; names are next to their addresses."""

    subject: str
    sender: str
    recipients: Sequence[str]
    text: str
    filenames: Sequence[str] = ()
    file_texts: Sequence[str] = ()


class IndexEntry(Struct, frozen=True):
    """Tokens with positions, and those after the last position."""

    realm: str
    texts: list[str] = field(default_factory=list)  # tokens by position, separated by spaces
    behind: list[str] = field(default_factory=list)
    scopes: list[str] = field(default_factory=list)

    @property
    def places(self) -> list[str]:
        return " ".join(self.texts).split()


class _Filling:
    """An entry under construction."""

    def __init__(self, entry: IndexEntry) -> None:
        self._entry = entry
        self._unread_chars = MAX_READ_CHARS
        self._uncounted: list[tuple[str, Sequence[str]]] = []  # marks and their words
        self._uncounted_chars = 0
        self._counts: dict[str, Counter[str]] = {}  # by mark; 0 for a word after the last position
        self._distinct_tokens = self._distinct_bytes = 0  # of the words that are counted
        self.position_count = 0

    def add(self, part: str, limit: int, mark: str) -> None:
        """Add at most `limit` positions for this part, and a gap."""
        text = part[: self._unread_chars]
        self._unread_chars -= len(text)
        words = _split_short(text) if len(text) <= SHORT_CHARS else tokens.split(text)
        if not words:
            return
        room = max(0, limit)
        if len(words) <= room and self._fits_uncounted(words, len(text)):
            self._uncounted.append((mark, words))
            self._put(words, mark)
        else:
            self._count_earlier()
            self._put_counted(words[:room], words[room:], mark)

    def add_all(self, parts: Iterable[str], limit: int, mark: str) -> None:
        end = self.position_count + limit
        for part in parts:
            self.add(part, end - self.position_count, mark)

    def _fits_uncounted(self, words: Sequence[str], chars: int) -> bool:
        """Return whether none of them can exceed a limit, whatever comes before."""
        self._uncounted_chars += chars
        count = self.position_count + len(words)
        if self._uncounted_chars > UNCOUNTED_CHARS or count > UNCOUNTED_PLACES:
            return False
        return (
            count <= MAX_POSITIONS_OF_A_TOKEN
            or self.position_count + max(Counter(words).values()) <= MAX_POSITIONS_OF_A_TOKEN
        )

    def _put(self, words: Sequence[str], mark: str) -> None:
        beginning = self._entry.realm + mark
        self._entry.texts.extend((beginning + f" {beginning}".join(words), GAP))
        self.position_count += len(words) + 1

    def _count_earlier(self) -> None:
        for mark, words in self._uncounted:
            counts = self._counts.setdefault(mark, Counter())
            self._take([word for word in dict.fromkeys(words) if word not in counts])
            counts.update(words)
        self._uncounted.clear()

    def _put_counted(self, placed: Sequence[str], rest: Sequence[str], mark: str) -> None:
        before, counts = self._counts.get(mark, Counter[str]()), Counter(placed)
        places_left = self._places_left(before, counts)
        behind = dict.fromkeys(rest, 0)
        for word in behind.keys() & (counts.keys() | before.keys()):
            del behind[word]
        new = [*(word for word in counts if word not in before), *behind] if before else [*counts, *behind]
        refused = [] if self._take(new) else [word for word in new if not self._take([word])]
        for word in refused:
            counts.pop(word, None)
            behind.pop(word, None)
        self._put_with_gaps(placed, places_left | dict.fromkeys(refused, 0), mark)
        self._entry.behind.extend([self._entry.realm + mark + word for word in behind])
        dict.update(counts, behind)
        self._counts[mark] = _sum(before, counts)

    def _places_left(self, before: Counter[str], counts: Counter[str]) -> dict[str, int]:
        """Return the places left for words that would exceed their limit."""
        if self.position_count + max(counts.values(), default=0) <= MAX_POSITIONS_OF_A_TOKEN:
            return {}
        left = {word: MAX_POSITIONS_OF_A_TOKEN - before.get(word, 0) for word in counts}
        return {word: count for word, count in left.items() if count < counts[word]}

    def _take(self, words: Sequence[str]) -> bool:
        """Return whether a database can also hold these new words."""
        count = self._distinct_tokens + len(words)
        size = self._distinct_bytes + len("".join(words).encode()) + len(words) * len(self._entry.realm + GAP)
        if count > MAX_DISTINCT_TOKENS or size > MAX_DISTINCT_BYTES:
            return False
        self._distinct_tokens, self._distinct_bytes = count, size
        return True

    def _put_with_gaps(self, words: Sequence[str], places_left: dict[str, int], mark: str) -> None:
        """Put words with gaps. A word in `places_left` keeps only its first positions, up to that number."""
        if words:
            self._put(_with_gaps(words, places_left) if places_left else words, mark)
        if words and places_left:
            self._entry.texts[-2] = self._entry.texts[-2].replace(self._entry.realm + mark + GAP, GAP)


@lru_cache(SHORT_TEXTS)
def _split_short(text: str) -> tuple[str, ...]:
    return tuple(tokens.split(text))


def _with_gaps(words: Sequence[str], places_left: dict[str, int]) -> list[str]:
    found = []
    for word in words:
        left = places_left.get(word)
        if left is not None:
            places_left[word] = left - 1
        found.append(word if left is None or left > 0 else GAP)
    return found


def _sum(counts: Counter[str], more: Counter[str]) -> Counter[str]:
    larger, smaller = (counts, more) if len(counts) > len(more) else (more, counts)
    larger.update(smaller)
    return larger


def without_words(realm: str, scopes: Iterable[str]) -> IndexEntry:
    """Return the entry of an email whose words cannot be read: it is found by its scopes alone."""
    return IndexEntry(realm, scopes=[realm + SCOPE + scope for scope in ("", *scopes)])


def of_mail(mail: Searchable, realm: str, scopes: Iterable[str]) -> IndexEntry:
    """Return the entry. The email belongs to the realm and is in the scopes; all of `a-z0-9`."""
    entry = without_words(realm, scopes)
    filling = _Filling(entry)
    filling.add(mail.subject, SUBJECT_PLACES, SUBJECT)
    filling.add(mail.subject, SUBJECT_PLACES, ANYWHERE)
    filling.add(mail.sender, SENDER_PLACES, SENDER)
    filling.add(mail.sender, SENDER_PLACES, ANYWHERE)
    filling.add_all(mail.recipients, RECIPIENT_PLACES, RECIPIENTS)
    filling.add_all(mail.recipients, RECIPIENT_PLACES, ANYWHERE)
    filling.add_all(mail.filenames, FILENAME_PLACES, ANYWHERE)
    filling.add(mail.text, TEXT_PLACES, ANYWHERE)
    filling.add_all(mail.file_texts, FILE_PLACES, ANYWHERE)
    return entry


def to_fts5(entry: IndexEntry) -> str:
    """Return a column to be split by `FTS5_TOKENIZER`, which folds no letter of a token."""
    behind = f" {GAP} ".join(entry.behind)
    return " ".join([*entry.texts, behind, GAP, *entry.scopes])


def to_tsvector(entry: IndexEntry, *unplaced: str) -> bytes:
    """Return PostgreSQL's binary form, which it need not parse; `unplaced` are further tokens.

    The form: a count, and for each token its bytes, a zero, the count of its places, and these.
    """
    found: dict[bytes, bytes] = {}
    for token, place in zip(" ".join(entry.texts).encode().split(), _places(), strict=False):
        if token in found:
            found[token] += place
        else:
            found[token] = place
    found.pop(GAP.encode(), None)
    for token in dict.fromkeys(" ".join([*entry.behind, *entry.scopes]).encode().split()):
        found[token] = found.get(token, b"") + LAST_POSITION.to_bytes(BYTES_OF_A_POSITION)
    found |= {token.encode(): b"" for token in unplaced}
    ends = _ends()
    tokens = [token + ends[len(places)] + places for token, places in found.items()]
    return len(tokens).to_bytes(4) + b"".join(tokens)


@lru_cache(1)
def _places() -> list[bytes]:
    return [place.to_bytes(BYTES_OF_A_POSITION) for place in range(1, LAST_POSITION)]


@lru_cache(1)
def _ends() -> list[bytes]:
    """Return what ends a token, by the bytes of its places."""
    counts = range(MAX_POSITIONS_OF_A_TOKEN + 2)
    return [
        b"\0" + count.to_bytes(BYTES_OF_A_POSITION) for count in counts for _ in range(BYTES_OF_A_POSITION)
    ]
