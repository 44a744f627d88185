"""The word index on PostgreSQL: `tsvector` under GIN, searched from its newest part on.

GIN finds all matches before it returns the first. So every entry also has the number of its part, and a
search names a few parts, then more, until it has enough.
"""

import struct
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import LiteralString, Protocol

from postroom.storage.database import Tx
from postroom_mail.search import index_entry, match_expression
from postroom_mail.search.index_entry import IndexEntry
from postroom_mail.search.query import Query

PART_BITS = 10  # 1,024 entries
FIRST_PARTS, MORE_PARTS = 4, 32
# Signature, flags and length of an extension; of a row: fields, length and value of a number, next length.
COPY_HEAD, COPY_ROW, COPY_END = b"PGCOPY\n\xff\r\n\0" + bytes(8), struct.Struct(">hiqi"), b"\xff\xff"


class CopyingTx(Tx, Protocol):
    def copy(self, statement: LiteralString, content: bytes) -> None: ...


class PostgresFulltext:
    __slots__ = ("_tx",)
    is_apart = False

    def __init__(self, tx: CopyingTx) -> None:
        self._tx = tx

    def clear(self) -> None:
        self._tx.run("delete from search_words")

    def put_all(self, entries: Sequence[tuple[int, IndexEntry]]) -> None:
        self._remove([doc for doc, _ in entries])
        rows = [(doc, index_entry.to_tsvector(entry, part_word(doc >> PART_BITS))) for doc, entry in entries]
        self._tx.copy("copy search_words (doc, words) from stdin (format binary)", to_copy(rows))

    def remove_all(self, docs: Mapping[int, IndexEntry | None]) -> None:
        self._remove(docs)

    def _remove(self, docs: Collection[int]) -> None:
        self._tx.run("delete from search_words where doc = any(:docs)", docs=list(docs))

    def find(self, query: Query, realms: Sequence[str], below: int, limit: int) -> list[int]:
        found: list[int] = []
        expression = match_expression.to_tsquery(query, realms)
        for parts, above in _windows(below, self._lowest()):
            wanted = f"({expression}) & ({' | '.join(map(_quoted, parts))})" if parts else expression
            found += self._find_between(wanted, above, below, limit - len(found))
            below = above + 1
            if len(found) == limit:
                break
        return found

    def find_among(self, query: Query, realms: Sequence[str], docs: Sequence[int]) -> list[int]:
        rows = self._tx.all(
            "with few as materialized (select doc, words from search_words where doc = any(:docs))"
            " select doc from few where words @@ cast(:expression as tsquery) order by doc desc",
            docs=list(docs),
            expression=match_expression.to_tsquery(query, realms),
        )
        return [row["doc"] for row in rows]

    def _lowest(self) -> int:
        row = self._tx.one("select min(doc) as doc from search_words")
        return 0 if row is None or row["doc"] is None else int(row["doc"])

    def _find_between(self, expression: str, above: int, below: int, limit: int) -> list[int]:
        rows = self._tx.all(
            "with found as materialized (select doc from search_words"
            " where words @@ cast(:expression as tsquery))"
            " select doc from found where doc > :above and doc < :below order by doc desc limit :limit",
            expression=expression,
            above=above,
            below=below,
            limit=limit,
        )
        return [row["doc"] for row in rows]


def _windows(below: int, lowest: int) -> Iterator[tuple[list[int], int]]:
    """Yield the numbers of parts to search, and the doc before them. No numbers: all remaining parts."""
    last = (below - 1) >> PART_BITS
    for count in (FIRST_PARTS, MORE_PARTS):
        first = last - count + 1
        if first << PART_BITS <= lowest:
            break
        yield list(range(first, last + 1)), (first << PART_BITS) - 1
        last = first - 1
    yield [], lowest - 1


def to_copy(rows: Iterable[tuple[int, bytes]]) -> bytes:
    """Return rows of a number and a value in the binary form of `copy`."""
    parts = [COPY_HEAD]
    for number, value in rows:
        parts += (COPY_ROW.pack(2, 8, number, len(value)), value)
    return b"".join((*parts, COPY_END))


def part_word(number: int) -> str:
    return f"#{number}"


def _quoted(number: int) -> str:
    return f"'{part_word(number)}'"
