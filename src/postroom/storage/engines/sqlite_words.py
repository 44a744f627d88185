"""The index of words on SQLite: FTS5 without content, and the texts to take entries out with."""

import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from postroom.mail.search import index_entry, match_expression
from postroom.mail.search.index_entry import IndexEntry
from postroom.mail.search.query import Query
from postroom.storage.database import one_of

if TYPE_CHECKING:
    from postroom.storage.database import Tx

Texts = dict[int, str]  # by the numbers of their documents

# Short texts lie together in rows of their own numbers: alone, each would fill a page.
DOCS_OF_A_ROW = 8
MOST_SHARED_CHARS = 16_000
HIGHEST_DOC = 1 << 40
FIRST_SHARED_ROW = 1 << 60  # in the middle of what is above the documents, whose numbers may be below 0
COMPRESSION_LEVEL = 3


class SqliteWords:
    __slots__ = ("_tx",)
    is_apart = True

    def __init__(self, tx: "Tx") -> None:
        self._tx = tx

    def clear(self) -> None:
        self._tx.run("insert into search_words (search_words) values ('delete-all')")
        self._tx.run("delete from search_texts")

    def put_all(self, entries: Sequence[tuple[int, IndexEntry]]) -> None:
        self.remove_all([doc for doc, _ in entries])
        in_order = sorted(entries, key=lambda each: each[0])
        self._tx.many(
            "insert into search_words (rowid, words) values :rows",
            [(doc, index_entry.to_fts5(entry)) for doc, entry in in_order],
        )
        self._keep({doc: index_entry.to_short(entry) for doc, entry in in_order})

    def remove_all(self, docs: Sequence[int]) -> None:
        kept = self._kept(docs)
        for doc in sorted(docs):
            if (text := _find(kept, doc)) is not None:
                self._tx.run(
                    "insert into search_words (search_words, rowid, words) values ('delete', :doc, :text)",
                    doc=doc,
                    text=text,
                )
        self._forget(kept, docs)

    def _kept(self, docs: Sequence[int]) -> dict[int, Texts]:
        """The rows that have texts of these documents, and maybe of others."""
        if not docs:
            return {}
        is_wanted, wanted = one_of("doc", sorted({row for doc in docs for row in (doc, _shared_row(doc))}))
        rows = self._tx.all(f"select doc, text from search_texts where {is_wanted}", **wanted)
        return {row["doc"]: _unpacked(row["doc"], row["text"]) for row in rows}

    def _keep(self, texts: Texts) -> None:
        own = {doc: {doc: text} for doc, text in texts.items() if len(text) > MOST_SHARED_CHARS}
        shared = [doc for doc in texts if doc not in own]
        rows = self._kept(shared)
        for doc in shared:
            rows.setdefault(_shared_row(doc), {})[doc] = texts[doc]
        self._write({**rows, **own})

    def _forget(self, kept: dict[int, Texts], docs: Sequence[int]) -> None:
        left = {row: {doc: text for doc, text in kept[row].items() if doc not in docs} for row in kept}
        if empty := [row for row, texts in left.items() if not texts]:
            is_wanted, wanted = one_of("doc", empty)
            self._tx.run(f"delete from search_texts where {is_wanted}", **wanted)
        self._write({row: texts for row, texts in left.items() if 0 < len(texts) < len(kept[row])})

    def _write(self, rows: dict[int, Texts]) -> None:
        self._tx.many(
            "insert into search_texts (doc, text) values :rows"
            " on conflict (doc) do update set text = excluded.text",
            [(row, _packed(row, texts)) for row, texts in rows.items()],
        )

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
        kept = self._kept(docs)
        return [
            doc
            for doc in sorted(docs, reverse=True)
            if (text := _find(kept, doc)) is not None and match_expression.holds(query, realms, text)
        ]


def _shared_row(doc: int) -> int:
    return FIRST_SHARED_ROW + doc // DOCS_OF_A_ROW


def _find(kept: dict[int, Texts], doc: int) -> str | None:
    for row in (doc, _shared_row(doc)):
        if (text := kept.get(row, {}).get(doc)) is not None:
            return index_entry.restored(text)
    return None


def _packed(row: int, texts: Texts) -> bytes:
    content = msgspec.msgpack.encode(texts) if _is_shared(row) else texts[row].encode()
    return zlib.compress(content, COMPRESSION_LEVEL)


def _unpacked(row: int, packed: bytes) -> Texts:
    content = zlib.decompress(packed)
    return msgspec.msgpack.decode(content, type=Texts) if _is_shared(row) else {row: content.decode()}


def _is_shared(row: int) -> bool:
    return row > HIGHEST_DOC
