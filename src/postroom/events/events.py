"""Events: the log of what happened, each kept as the very bytes to be sent."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from msgspec import Struct

from postroom import ids
from postroom.accounts.reach import Reach, default_pod
from postroom.errors import NotFound
from postroom.events import kinds, payload
from postroom.events.payload import News
from postroom.storage import pages
from postroom.storage.database import Row, Tx, one_of

COLUMNS_BESIDE_PAYLOAD = "id, account_id, position, inbox_id, kind, message_id, created_at, pod_id"


class Event(Struct, frozen=True):
    id: str
    account_id: str
    position: int
    inbox_id: str
    kind: str
    payload: bytes
    message_id: str
    created_at: int
    pod_id: str

    @classmethod
    def from_row(cls, row: Row, content: bytes | None = None) -> "Event":
        return cls(
            row["id"],
            row["account_id"],
            row["position"],
            row["inbox_id"],
            row["kind"],
            bytes(row["payload"]) if content is None else content,
            row["message_id"],
            row["created_at"],
            row["pod_id"] or default_pod(row["account_id"]),
        )


def record_all(tx: Tx, told: Sequence[News], base_url: str) -> list[Event]:
    """In their order."""
    positions = _take_positions(tx, Counter(news.account_id for news in told))
    recorded = [_to_event(news, next(positions[news.account_id]), base_url) for news in told]
    tx.many(
        "insert into events (id, account_id, position, inbox_id, kind, payload, message_id, created_at,"
        " pod_id) values :rows",
        [
            (
                event.id,
                event.account_id,
                event.position,
                event.inbox_id,
                event.kind,
                event.payload,
                event.message_id,
                event.created_at,
                event.pod_id,
            )
            for event in recorded
        ],
    )
    return recorded


def _to_event(news: News, position: int, base_url: str) -> Event:
    document, event_id = news.document, ids.new(ids.EVENT, news.occurred_at)
    return Event(
        id=event_id,
        account_id=news.account_id,
        position=position,
        inbox_id=document.inbox_id,
        kind=news.kind,
        payload=payload.encode(news, event_id, base_url),
        message_id=document.id,
        created_at=news.occurred_at,
        pod_id=news.pod_id,
    )


def _take_positions(tx: Tx, counts: Counter[str]) -> dict[str, Iterator[int]]:
    """The rows stay locked until commit, so that positions become visible in their order."""
    positions: dict[str, Iterator[int]] = {}
    for account_id, count in sorted(counts.items()):
        row = tx.one(
            "update accounts set event_position = event_position + :count where id = :id"
            " returning event_position",
            count=count,
            id=account_id,
        )
        assert row is not None
        last = int(row["event_position"])
        positions[account_id] = iter(range(last - count + 1, last + 1))
    return positions


def bell(account_id: str) -> str:
    """Rings when an account has a new event."""
    return f"events:{account_id}"


@dataclass(frozen=True, slots=True)
class Filter:
    """Which events within reach somebody wants; an empty set wants all."""

    reach: Reach
    inbox_ids: frozenset[str] = frozenset()
    kinds: frozenset[str] = frozenset()


def position_of(tx: Tx, reach: Reach, event_id: str) -> int:
    """Of any event of the account: whoever knows an id, of another inbox too, may go on behind it."""
    row = ids.is_id(ids.EVENT, event_id) and tx.one(
        "select position from events where id = :id and account_id = :account_id",
        id=event_id,
        account_id=reach.account_id,
    )
    if not row:
        raise NotFound("No such event. It may be older than 30 days.")
    return int(row["position"])


def position_of_message(tx: Tx, account_id: str, inbox_id: str, message_id: str) -> int:
    rows = ids.is_id(ids.MESSAGE, message_id) and tx.all(
        "select account_id, inbox_id, position from events where message_id = :id", id=message_id
    )
    owner = (account_id, inbox_id)
    positions = [row["position"] for row in rows or () if (row["account_id"], row["inbox_id"]) == owner]
    if not positions:
        raise NotFound("No such message, or its event is older than 30 days.")
    return int(min(positions))


def find(tx: Tx, event_id: str) -> Event | None:
    row = tx.one("select * from events where id = :id", id=event_id)
    return None if row is None else Event.from_row(row)


def last_position(tx: Tx, account_id: str) -> int:
    row = tx.one("select event_position from accounts where id = :id", id=account_id)
    return 0 if row is None else int(row["event_position"])


@dataclass(frozen=True, slots=True)
class Slice:
    """Events of the log. With more behind it, what follows its last one was not looked at."""

    events: list[Event]
    has_more: bool
    is_cut: bool = False  # what was asked for did not fit into a page

    @property
    def last_position(self) -> int:
        return self.events[-1].position


def list_after(tx: Tx, wanted: Filter, position: int, limit: int) -> Slice:
    """Oldest first."""
    if wanted.inbox_ids or wanted.kinds or not wanted.reach.is_account:
        rows = _at_positions(tx, wanted.reach, _find_positions(tx, wanted, position, limit), limit)
    else:
        rows = tx.all(
            f"select {_listed(limit)} from events where account_id = :account_id and position > :position"
            " order by position limit :limit",
            account_id=wanted.reach.account_id,
            position=position,
            limit=limit,
        )
    taken = pages.fitting(rows, "payload", lambda row: _payload(tx, row["id"]))
    found = [Event.from_row(row, content) for row, content in taken]
    is_cut = len(found) < len(rows)
    return Slice(found, has_more=is_cut or len(rows) == limit, is_cut=is_cut)


def _listed(limit: int) -> str:
    return f"{COLUMNS_BESIDE_PAYLOAD}, {pages.content('payload', limit)}"


def _find_positions(tx: Tx, wanted: Filter, position: int, limit: int) -> list[int]:
    """One look into an index for each place and kind: a filter over the log would walk through all of it."""
    found: list[int] = []
    for place in _places(tx, wanted):
        for kind in sorted(wanted.kinds) or kinds.KINDS:
            found += _positions_of(tx, place, kind, position, limit)
    return sorted(found)[:limit]


def _places(tx: Tx, wanted: Filter) -> list[dict[str, str]]:
    """Columns and their values: inboxes that are asked for and within reach, or a pod, or the account."""
    reach = wanted.reach
    if reach.inbox_id is not None and not wanted.inbox_ids:
        return [{"inbox_id": reach.inbox_id}]
    if wanted.inbox_ids:
        return [{"inbox_id": each} for each in sorted(wanted.inbox_ids) if _is_within(tx, each, reach)]
    pods = pods_of(reach)
    return [{"account_id": reach.account_id, "pod_id": pod} for pod in pods] or [
        {"account_id": reach.account_id}
    ]


def _is_within(tx: Tx, inbox_id: str, reach: Reach) -> bool:
    """An inbox has one owner, whom any of its events names, also when it is gone."""
    row = tx.one(
        "select account_id, pod_id from events where inbox_id = :id order by kind, position limit 1",
        id=inbox_id,
    )
    if row is None:
        return False
    return reach.covers(row["account_id"], row["pod_id"] or default_pod(row["account_id"]), inbox_id)


def _positions_of(tx: Tx, place: dict[str, str], kind: str, position: int, limit: int) -> list[int]:
    where = " and ".join(f"{column} = :{column}" for column in place)
    rows = tx.all(
        f"select position from events where {where} and kind = :kind and position > :position"
        " order by position limit :limit",
        kind=kind,
        position=position,
        limit=limit,
        **place,
    )
    return [row["position"] for row in rows]


def _at_positions(tx: Tx, reach: Reach, positions: Sequence[int], limit: int) -> list[Row]:
    if not positions:
        return []
    is_wanted, params = one_of("position", positions)
    rows = tx.all(
        f"select {_listed(limit)} from events where account_id = :account_id and {is_wanted}",
        account_id=reach.account_id,
        **params,
    )
    return sorted(rows, key=lambda row: int(row["position"]))


def _payload(tx: Tx, event_id: str) -> bytes:
    row = tx.one("select payload from events where id = :id", id=event_id)
    assert row is not None
    return bytes(row["payload"])


def pods_of(reach: Reach) -> list[str]:
    """As they stand in the rows; none for an account, whose pods are all of them."""
    if reach.pod_id is None:
        return []
    return [reach.pod_id, ""] if reach.pod_id == default_pod(reach.account_id) else [reach.pod_id]
