"""SQLite's index of words keeps no texts: an entry is taken out by what it was put as."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from postroom.storage.engines import sqlite, sqlite_index
from postroom.storage.engines.sqlite import SqliteTx
from postroom.storage.engines.sqlite_fulltext import SqliteFulltext
from postroom_mail.search import index_entry
from postroom_mail.search.index_entry import IndexEntry, Searchable
from postroom_mail.search.query import parse

REALM = "0001"


class Shelf:
    """An index of its own."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.tx = SqliteTx(connection)
        self.fulltext = SqliteFulltext(self.tx)

    def put(self, texts: dict[int, str]) -> None:
        self.fulltext.put_all([(doc, entry(text)) for doc, text in texts.items()])
        self.tx.many(
            "insert into search_documents (doc, message_id, version) values :rows on conflict do nothing",
            [(doc, str(doc), 1) for doc in texts],
        )

    def find(self, q: str) -> list[int]:
        return self.fulltext.find(parse(q), [REALM], 1 << 62, 100)

    def find_among(self, q: str, docs: list[int]) -> list[int]:
        return self.fulltext.find_among(parse(q), [REALM], docs)


def entry(text: str) -> IndexEntry:
    return index_entry.of_mail(Searchable("", "", [], text), REALM, [])


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[Shelf]:
    with closing(sqlite.connect(tmp_path / "words.db")) as connection:
        connection.executescript(sqlite_index.SCHEMA.read_text())
        yield Shelf(connection)


@pytest.mark.parametrize("first", [0, -12, 1 << 30])
def test_taking_some_out_leaves_the_others(shelf: Shelf, first: int) -> None:
    texts = {doc: f"apple n{doc - first}" for doc in range(first, first + 20)}
    shelf.put(texts)
    gone = [first + 5, first + 6, first + 19]

    shelf.fulltext.remove_all({doc: entry(texts[doc]) for doc in gone})

    left = sorted(texts.keys() - gone, reverse=True)
    assert shelf.find("apple") == left == shelf.find_among("apple", list(texts))
    assert shelf.find("n6") == []
    assert shelf.find_among('"apple n7"', list(texts)) == [first + 7]
    shelf.fulltext.remove_all({doc: entry(texts[doc]) for doc in left})
    assert shelf.find("apple") == []


def test_what_was_put_as_something_unknown_is_found_by_nobody(shelf: Shelf) -> None:
    shelf.put({1: "apple", 2: "apple"})

    shelf.fulltext.remove_all({1: None})
    shelf.tx.run("delete from search_documents where doc = 1")

    assert shelf.find("apple") == [2] == shelf.find_among("apple", [1, 2])


def test_a_document_put_again_is_found_once_and_by_its_new_phrases(shelf: Shelf) -> None:
    shelf.put({1: "apple pie", 2: "plum"})

    shelf.put({1: "pie apple cherry"})
    shelf.tx.run("insert into search_words (search_words) values ('optimize')")

    assert shelf.find("apple") == shelf.find("cherry") == shelf.find('"pie apple"') == [1]
    assert shelf.find('"apple pie"') == []
