"""The word index on SQLite: FTS5 without content, which needs an entry again to delete it."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from postroom_mail.search import index_entry, match_expression
from postroom_mail.search.index_entry import IndexEntry
from postroom_mail.search.query import Query

if TYPE_CHECKING:
    from postroom.storage.database import Tx

# What FTS5 could not remove is never found.
IS_THERE = "exists (select 1 from search_documents where doc = search_words.rowid)"


class SqliteFulltext:
    __slots__ = ("_tx",)
    is_apart = True

    def __init__(self, tx: "Tx") -> None:
        self._tx = tx

    def clear(self) -> None:
        self._tx.run("insert into search_words (search_words) values ('delete-all')")

    def put_all(self, entries: Sequence[tuple[int, IndexEntry]]) -> None:
        """Put the entries, one per statement.

        FTS5 would write a statement of several rows as a separate segment.
        """
        for doc, entry in sorted(entries, key=lambda each: each[0]):
            self._tx.run(
                "insert into search_words (rowid, words) values (:doc, :text)",
                doc=doc,
                text=index_entry.to_fts5(entry),
            )

    def remove_all(self, docs: Mapping[int, IndexEntry | None]) -> None:
        for doc, entry in sorted(docs.items(), key=lambda each: each[0]):
            if entry is not None:
                self._tx.run(
                    "insert into search_words (search_words, rowid, words) values ('delete', :doc, :text)",
                    doc=doc,
                    text=index_entry.to_fts5(entry),
                )

    def find(self, query: Query, realms: Sequence[str], below: int, limit: int) -> list[int]:
        rows = self._tx.tuples(
            "select rowid from search_words where search_words match :expression and rowid < :below"
            f" and {IS_THERE} order by rowid desc limit :limit",
            expression=match_expression.to_fts5(query, realms),
            below=below,
            limit=limit,
        )
        return [doc for (doc,) in rows]

    def find_among(self, query: Query, realms: Sequence[str], docs: Sequence[int]) -> list[int]:
        expression = match_expression.to_fts5(query, realms)
        return [doc for doc in sorted(docs, reverse=True) if self._has(doc, expression)]

    def _has(self, doc: int, expression: str) -> bool:
        sql = "select 1 from search_words where search_words match :expression and rowid = :doc"
        return bool(self._tx.tuples(f"{sql} and {IS_THERE}", expression=expression, doc=doc))
