"""The records of a journal, and the messages between its reading and its depositing end."""

import msgspec
from msgspec import Struct

from postroom.inward.mails import Arrival, Origin, ReadMail
from postroom.storage.records import Record

LENGTH_BYTES = 4

_origin = msgspec.msgpack.Decoder(Origin)


class Journaled(Struct, frozen=True, tag=True, array_like=True):
    """An email read from a journal, or why it could not be read; with its place and the next one's.

    `is_damage`: there is no whole record between the two, only damaged bytes.
    """

    start: tuple[int, int]
    end: tuple[int, int]
    read: ReadMail | None
    failure: str = ""
    is_damage: bool = False


class JournalProgress(Struct, frozen=True, tag=True, array_like=True):
    """Everything before this place is deposited."""

    place: tuple[int, int]


class Held(Struct, frozen=True, tag=True, array_like=True):
    """Nothing can be deposited now; it is retried until it can."""

    reason: str
    is_full: bool


def encode(arrival: Arrival) -> Record:
    origin = msgspec.msgpack.encode(arrival.origin)
    return len(origin).to_bytes(LENGTH_BYTES, "big") + origin, arrival.raw


def decode(record: bytes) -> Arrival:
    behind = LENGTH_BYTES + int.from_bytes(record[:LENGTH_BYTES], "big")
    return Arrival(_origin.decode(record[LENGTH_BYTES:behind]), record[behind:])
