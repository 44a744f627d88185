"""The index of words on SQLite: FTS5 without content, and the texts to take entries out with."""

import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from postroom.mail import index_entry, match_expression
from postroom.mail.index_entry import IndexEntry
from postroom.mail.query import Query
from postroom.storage.database import one_of

if TYPE_CHECKING:
    from postroom.storage.database import Tx


class SqliteWords:
    __slots__ = ("_tx",)

    def __init__(self, tx: "Tx") -> None:
        self._tx = tx

    def put_all(self, entries: Sequence[tuple[int, IndexEntry]]) -> None:
        self.remove_all([doc for doc, _ in entries])
        texts = [
            (doc, index_entry.to_fts5(entry)) for doc, entry in sorted(entries, key=lambda each: each[0])
        ]
        for doc, text in texts:
            self._tx.run("insert into search_words (rowid, words) values (:doc, :text)", doc=doc, text=text)
        self._tx.many(
            "insert into search_texts (doc, text) values :rows",
            [(doc, zlib.compress(text.encode(), 3)) for doc, text in texts],
        )

    def remove_all(self, docs: Sequence[int]) -> None:
        for doc in sorted(docs):
            row = self._tx.one("select text from search_texts where doc = :doc", doc=doc)
            if row is not None:
                self._remove(doc, zlib.decompress(row["text"]).decode())

    def _remove(self, doc: int, text: str) -> None:
        self._tx.run(
            "insert into search_words (search_words, rowid, words) values ('delete', :doc, :text)",
            doc=doc,
            text=text,
        )
        self._tx.run("delete from search_texts where doc = :doc", doc=doc)

    def find(self, query: Query, realms: Sequence[str], below: int, limit: int) -> list[int]:
        rows = self._tx.all(
            "select rowid as doc from search_words where search_words match :expression and rowid < :below"
            " order by rowid desc limit :limit",
            expression=match_expression.to_fts5(query, realms),
            below=below,
            limit=limit,
        )
        return [row["doc"] for row in rows]

    def find_among(self, query: Query, realms: Sequence[str], docs: Sequence[int]) -> list[int]:
        """Read from the texts: the index would look for every word anew for each of the documents."""
        is_wanted, wanted = one_of("doc", docs)
        rows = self._tx.all(
            f"select doc, text from search_texts where {is_wanted} order by doc desc", **wanted
        )
        return [
            row["doc"]
            for row in rows
            if match_expression.holds(query, realms, zlib.decompress(row["text"]).decode())
        ]
