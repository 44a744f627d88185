"""Rows that are written from the fields of a type, and read back into it."""

from dataclasses import dataclass

from msgspec import Struct

from postroom.storage.database import Database, Tx, insert, insert_item, item_from_row


@dataclass(frozen=True, slots=True)
class Note:
    name: str
    number: int | None
    words: tuple[str, ...]


class Label(Struct, frozen=True):
    name: str
    number: int | None


def put_and_read(tx: Tx) -> list[object]:
    tx.run("create table jottings (name text primary key, number bigint, words text, place text)")
    insert_item(tx, "jottings", Note("a", 1, ("x", "y")), words="x y", place="here")
    insert_item(tx, "jottings", Label("b", None))
    insert(tx, "jottings", name="c", place="there")
    first, second, third = tx.all("select * from jottings order by name")
    words = tuple(first["words"].split())
    return [item_from_row(Note, first, words=words), item_from_row(Label, second), third["place"]]


async def test_what_is_inserted_is_read_back_and_what_is_converted_goes_before(db: Database) -> None:
    assert await db.write(put_and_read) == [Note("a", 1, ("x", "y")), Label("b", None), "there"]
