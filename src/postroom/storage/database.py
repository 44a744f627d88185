"""What domain functions see of a database (Tx), and what servers see of it (Database)."""

import dataclasses
import functools
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from postroom_mail.search.index_entry import IndexEntry
from postroom_mail.search.query import Query

P = ParamSpec("P")
T = TypeVar("T")
Item = TypeVar("Item")
Values = Sequence[object]

ROWS = ":rows"
ROWS_OF_A_STATEMENT = 32


class Row(Protocol):
    def __getitem__(self, column: str, /) -> Any: ...


class WordIndex(Protocol):
    """Which documents contain which words: the one thing that each engine does in its own way."""

    @property
    def is_apart(self) -> bool:
        """Return whether it has its own file, which is synced later than the database."""
        ...

    def clear(self) -> None: ...

    def put_all(self, entries: Sequence[tuple[int, IndexEntry]]) -> None:
        """Put the entries. If a document has one already, words of the old one may still be found."""
        ...

    def remove_all(self, docs: Mapping[int, IndexEntry | None]) -> None:
        """Remove each document with the entry that was put.

        If that is unknown, words may remain that nothing finds.
        """
        ...

    def find(self, query: Query, realms: Sequence[str], below: int, limit: int) -> list[int]:
        """Return the highest documents below that number, in any of the realms, highest first."""
        ...

    def find_among(self, query: Query, realms: Sequence[str], docs: Sequence[int]) -> list[int]:
        """Return those of `docs` that match, highest first."""
        ...


class Tx(Protocol):
    """One transaction. SQL is the subset that SQLite and PostgreSQL share, with :name parameters."""

    def one(self, sql: str, **params: object) -> Row | None: ...
    def all(self, sql: str, **params: object) -> list[Row]: ...
    def tuples(self, sql: str, **params: object) -> list[tuple[Any, ...]]:
        """Return the same as `all` as tuples, in the order of columns, for long lists that are read often."""
        ...

    def run(self, sql: str, **params: object) -> int:
        """Runs a change and returns how many rows it changed."""
        ...

    def many(self, sql: str, rows: Sequence[Values]) -> list[Row]:
        """Run one statement for many rows, written as `values :rows`. Return the rows that it returns."""
        ...

    def ring(self, *bells: str) -> None:
        """Rings these bells once the transaction is committed, and never otherwise."""
        ...

    @property
    def fulltext(self) -> WordIndex: ...


# At the end of a select. SQLite, which has one writer, sees a comment; PostgreSQL gets its own syntax.
SKIP_LOCKED = "/* skip locked */"  # the rows are claimed next: nodes skip each other's instead of waiting
LOCK_ROWS = "/* lock rows */"  # other transactions that change or lock these rows wait until this one ends

# A pair is looked up by joining `(values :rows) as asked`, whose columns both databases call column1 and
# column2: SQLite would scan the whole table for `(a, b) in (values …)`. `cross join` keeps the order.


def one_of(column: str, values: Sequence[object]) -> tuple[str, dict[str, object]]:
    """Return `column in (…)` for the given values, and its parameters."""
    params = {f"{column.rpartition('.')[2]}_{number}": value for number, value in enumerate(values)}
    return f"{column} in ({', '.join(f':{name}' for name in params)})", params


def literal(word: str) -> str:
    """Return a constant of the source, never of a request, as SQL.

    SQLite plans a statement each time it runs if a parameter is compared with a column that a partial index
    has in its condition: that takes up to six times as long as the statement.
    """
    if not word.isalpha():
        raise ValueError(word)
    return f"'{word}'"


def all_of(tx: Tx, sql: str, column: str, values: Sequence[object], /, **params: object) -> list[Row]:
    """Return the rows of a statement in which `:wanted` stands for `column in (…)`; none without values."""
    if not values:
        return []
    is_wanted, wanted = one_of(column, values)
    return tx.all(sql.replace(":wanted", is_wanted), **wanted, **params)


class BellListener(Protocol):
    """Gets every ring of its bell since it began to listen, or since the last one it got."""

    async def wait(self, timeout: float) -> bool: ...
    def wake(self) -> None: ...
    def close(self) -> None: ...


class IndexStore(Protocol):
    """The database of the messages, and of the search index."""

    async def read(self, fn: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T: ...

    async def read_long(
        self, fn: Callable[Concatenate[Tx, P], T], seconds: float, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run a read that may take a while, next to all others.

        Raise Overdue if it takes longer than this.
        """
        ...

    async def write_index(self, fn: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a transaction on the tables of the search index only: they may have their own file."""
        ...


class Database(IndexStore, Protocol):
    def look_up(
        self, fn: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T | Awaitable[T]:
        """Run a read whose statements may each see a different state; SQLite answers at once."""
        ...

    def version(self) -> int | None:
        """Changes with every write, by any process. None if it cannot be read cheaply."""
        ...

    async def write(self, fn: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run one transaction, durable on return. `fn` may run again if the first run was rolled back."""
        ...

    async def sync_index(self) -> None:
        """Make all earlier `write_index` calls durable."""
        ...

    async def write_together(
        self, fn: Callable[[Tx, list[Item]], list[T]], item: Item, patience_seconds: float = 0.0
    ) -> T:
        """Run like `write`, for a function that takes many items at once and returns a result for each.

        Items that wait together are one call. If that fails, its halves are tried, down to single items.
        Under load an item waits for others for up to `patience_seconds`.
        """
        ...

    async def find_damage(self, of_index: bool = False) -> str:
        """Reads the whole file next to other work. Empty if sound, or for PostgreSQL, which checks itself."""
        ...

    async def repair_index(self, is_asked: bool = False) -> str:
        """Replaces the file of the search index by an empty one if it is gone, damaged, or if asked.

        Also opens a file that another process put there. Returns what was wrong; the index is then made anew.
        """
        ...

    def ring(self, *bells: str) -> None: ...
    def listen(self, bell: str) -> BellListener: ...
    async def close(self) -> None: ...


def in_parts(sql: str, rows: Sequence[Values], mark: str) -> Iterator[tuple[str, list[object]]]:
    """Yield statements of limited size with their values, so that a database prepares few different ones.

    A value is written as `mark`, with a number behind it if the mark is a dollar.
    """
    for start in range(0, len(rows), ROWS_OF_A_STATEMENT):
        part = rows[start : start + ROWS_OF_A_STATEMENT]
        yield _with_rows(sql, len(part), len(part[0]), mark), [value for row in part for value in row]


@functools.lru_cache(maxsize=1024)
def _with_rows(sql: str, height: int, width: int, mark: str) -> str:
    marks = (
        [f"${number}" for number in range(1, height * width + 1)] if mark == "$" else [mark] * width * height
    )
    rows = [f"({', '.join(marks[start : start + width])})" for start in range(0, len(marks), width)]
    return sql.replace(ROWS, ", ".join(rows))


class Overdue(Exception):
    """A read took longer than allowed."""


class StorageError(Exception):
    """The storage cannot be used as it is; the message tells the operator what to do."""


def item_from_row(kind: Callable[..., Item], row: Row, /, **converted: object) -> Item:
    """Return the item of a row: each field from the column of its name, except the converted ones given."""
    names = field_names(kind)
    return kind(*[converted[name] if name in converted else row[name] for name in names])


def insert_item(tx: Tx, table: str, item: object, /, **converted: object) -> None:
    """Insert an item: each field into the column of its name; converted and additional columns are given."""
    kind: Any = type(item)
    insert(tx, table, **{name: getattr(item, name) for name in field_names(kind)} | converted)


def insert(tx: Tx, table: str, /, **columns: object) -> None:
    tx.run(_statement(table, tuple(columns)), **columns)


def insert_new(tx: Tx, table: str, /, **columns: object) -> int:
    """Insert a row unless it exists. Return how many were added."""
    return tx.run(f"{_statement(table, tuple(columns))} on conflict do nothing", **columns)


def delete(tx: Tx, table: str, /, **columns: object) -> int:
    """Deletes rows with these values; returns how many."""
    return tx.run(_deletion(table, tuple(columns)), **columns)


def update(tx: Tx, table: str, row_id: str, /, **columns: object) -> int:
    """Updates the row with this id; returns how many were changed."""
    return tx.run(_update(table, tuple(columns)), row_id=row_id, **columns)


def update_item(tx: Tx, table: str, item: Any, names: Sequence[str], /, **converted: object) -> None:
    """Updates these fields of a stored item; converted columns are given."""
    update(tx, table, item.id, **{name: getattr(item, name) for name in names} | converted)


def count(tx: Tx, sql: str, **params: object) -> int:
    """Return the column `number` of a statement; 0 without a row."""
    row = tx.one(sql, **params)
    return 0 if row is None else int(row["number"])


@functools.cache
def field_names(kind: Any) -> tuple[str, ...]:
    """Return the fields of a dataclass or a Struct."""
    if dataclasses.is_dataclass(kind):
        return tuple(field.name for field in dataclasses.fields(kind))
    return tuple(kind.__struct_fields__)


@functools.cache
def _statement(table: str, columns: tuple[str, ...]) -> str:
    values = ", ".join(f":{column}" for column in columns)
    return f"insert into {table} ({', '.join(columns)}) values ({values})"


@functools.cache
def _update(table: str, columns: tuple[str, ...]) -> str:
    return f"update {table} set {', '.join(f'{each} = :{each}' for each in columns)} where id = :row_id"


@functools.cache
def _deletion(table: str, columns: tuple[str, ...]) -> str:
    return f"delete from {table} where {' and '.join(f'{each} = :{each}' for each in columns)}"
