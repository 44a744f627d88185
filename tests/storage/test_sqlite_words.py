"""The texts beside SQLite's index of words: short ones share rows, and each can be taken out by itself."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from postroom.mail.search import index_entry
from postroom.mail.search.index_entry import IndexEntry, Searchable
from postroom.mail.search.query import parse
from postroom.storage import database
from postroom.storage.engines import sqlite
from postroom.storage.engines.sqlite import SqliteTx
from postroom.storage.engines.sqlite_words import DOCS_OF_A_ROW, MOST_SHARED_CHARS, SqliteWords

REALM = "0001"


class Shelf:
    """An index of its own."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.tx = SqliteTx(connection)
        self.words = SqliteWords(self.tx)

    def put(self, texts: dict[int, str]) -> None:
        self.words.put_all([(doc, entry(text)) for doc, text in texts.items()])

    def find(self, q: str) -> list[int]:
        return self.words.find(parse(q), [REALM], 1 << 62, 100)

    def find_among(self, q: str, docs: list[int]) -> list[int]:
        return self.words.find_among(parse(q), [REALM], docs)

    def count(self, table: str) -> int:
        row = self.tx.one(f"select count(*) as total from {table}")
        assert row is not None
        return int(row["total"])


def entry(text: str) -> IndexEntry:
    return index_entry.of_mail(Searchable("", "", [], text), REALM, [])


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[Shelf]:
    schema = Path(database.__file__).parent / "schema" / "sqlite" / "search_index.sql"
    with closing(sqlite.connect(tmp_path / "words.db")) as connection:
        connection.executescript(schema.read_text())
        yield Shelf(connection)


def test_short_texts_share_a_row_and_each_is_found(shelf: Shelf) -> None:
    shelf.put({doc: f"apple n{doc}" for doc in range(DOCS_OF_A_ROW)})

    assert shelf.count("search_texts") == 1
    assert shelf.find("apple") == shelf.find_among("apple", list(range(DOCS_OF_A_ROW)))
    assert shelf.find_among("n3", [2, 3, 4]) == [3]


@pytest.mark.parametrize("first", [0, -12, 1 << 30])
def test_taking_one_out_leaves_the_others_and_none_is_left_at_the_end(shelf: Shelf, first: int) -> None:
    docs = list(range(first, first + 20))
    shelf.put({doc: f"apple n{doc - first}" for doc in docs})

    shelf.words.remove_all([docs[5], docs[6], docs[19]])

    left = sorted({*docs} - {docs[5], docs[6], docs[19]}, reverse=True)
    assert shelf.find("apple") == left == shelf.find_among("apple", docs)
    assert shelf.find("n6") == []
    shelf.words.remove_all(left)
    assert shelf.find("apple") == []
    assert shelf.count("search_texts") == 0


def test_a_document_put_again_has_its_new_words_alone(shelf: Shelf) -> None:
    shelf.put({1: "apple", 2: "pear", 3: "plum"})

    shelf.put({2: "cherry"})

    assert shelf.find("pear") == []
    assert shelf.find("cherry") == [2] == shelf.find_among("cherry", [1, 2, 3])
    assert shelf.find("apple") == [1]


def test_a_long_text_has_a_row_of_its_own(shelf: Shelf) -> None:
    shelf.put({1: "apple", 2: "pear " * MOST_SHARED_CHARS, 3: "plum"})

    assert shelf.count("search_texts") == 2
    shelf.put({2: "short"})
    assert shelf.count("search_texts") == 1
    assert shelf.find("pear") == []
    assert shelf.find_among("short", [1, 2, 3]) == [2]


MANY_WORDS = " ".join(f"word{number}" for number in range(index_entry.MAX_PLACES + 9))


@pytest.mark.parametrize("subject", ["", "pie"])
@pytest.mark.parametrize(
    "text", ["", "apple", "apple pie Äpfel 東京", "x" * 5000, "apple " * 300, "apple pie " * 300, MANY_WORDS]
)
def test_a_shortened_text_is_restored_to_the_letter(subject: str, text: str) -> None:
    mail = Searchable(subject, "Ann <ann@x.org>" if subject else "", [], text)
    made = index_entry.of_mail(mail, REALM, ["i1"])
    short = index_entry.to_short(made)

    assert index_entry.restored(short) == index_entry.to_fts5(made)
    assert f"{REALM}{index_entry.ANYWHERE}" not in short
