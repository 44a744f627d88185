"""Claims due deliveries of one kind: a few of each lane, so that a dead destination delays no other."""

from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec import Struct, field

from postroom.clock import SECOND
from postroom.queue import deliveries
from postroom.queue.deliveries import LANE_WIDTH, Delivery
from postroom.storage.database import Row, Tx, literal

PAGE = 256
# A commit may come late, and the clocks of nodes differ: what came due less than LATE ago is read again, and
# the walk starts over whenever ANEW has passed.
LATE = 2 * SECOND
ANEW = 10 * SECOND
START = (-1, "")


class Room(Struct):
    """What a claim may still take: in all, and of each lane."""

    limit: int
    running: frozenset[str]  # here, even if their lease has run out
    used: Counter[str]
    chosen: dict[str, str] = field(default_factory=dict)  # the lane of each delivery

    @property
    def is_full(self) -> bool:
        return len(self.chosen) >= self.limit

    def is_full_in(self, lane: str) -> bool:
        return self.is_full or self.used[lane] >= LANE_WIDTH

    def take(self, row: Row) -> None:
        if row["id"] not in self.chosen and row["id"] not in self.running:
            self.chosen[row["id"]] = row["lane"]
            self.used[row["lane"]] += 1


class Claims:
    """Walks through what is due, oldest first, and remembers its position.

    What is due before that position is in lanes that were full. Those lanes are queried separately, so that
    the backlog of one is not walked through at each claim.
    """

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._began_at = 0
        self._point: tuple[int, str] = START
        self._passed: set[str] = set()  # the lanes with waiting deliveries before the position

    def is_any_due(self, tx: Tx, now: int) -> bool:
        found = tx.one(
            f"select 1 as found from deliveries where state = 'pending' and kind = {literal(self._kind)}"
            " and due_at <= :now limit 1",
            now=now,
        )
        return found is not None

    def claim(self, tx: Tx, running: Sequence[Delivery], limit: int, now: int) -> list[Delivery]:
        if not 0 <= now - self._began_at < ANEW:
            self._began_at, self._point, self._passed = now, START, set()
        used = Counter(delivery.lane for delivery in running)
        room = Room(limit, frozenset(delivery.id for delivery in running), used)
        for lane in sorted(self._passed):
            if not room.is_full_in(lane):
                self._take_from(tx, lane, room, now)
        self._walk(tx, room, now)
        claimed = deliveries.claim(tx, list(room.chosen), now)
        taken_by_others = room.chosen.keys() - {delivery.id for delivery in claimed}
        self._passed.update(room.chosen[delivery_id] for delivery_id in taken_by_others)
        return claimed

    def _take_from(self, tx: Tx, lane: str, room: Room, now: int) -> None:
        waiting = tx.all(
            f"select id, lane from deliveries where state = 'pending' and kind = {literal(self._kind)}"
            " and lane = :lane and due_at <= :now order by due_at, id limit :limit",
            lane=lane,
            now=now,
            limit=LANE_WIDTH + 1,  # as many may run here, and one more shows that others wait
        )
        for row in waiting:
            if not room.is_full_in(lane):
                room.take(row)
        if all(row["id"] in room.chosen for row in waiting) and len(waiting) <= LANE_WIDTH:
            self._passed.discard(lane)

    def _walk(self, tx: Tx, room: Room, now: int) -> None:
        for row in () if room.is_full else self._due(tx, now):
            if room.is_full:
                return
            if row["due_at"] < now - LATE:
                self._point = (row["due_at"], row["id"])
            if room.is_full_in(row["lane"]) or row["id"] in room.running:
                self._passed.add(row["lane"])
            else:
                room.take(row)

    def _due(self, tx: Tx, now: int) -> Iterator[Row]:
        """Return what is due after the position, page by page."""
        (due_at, delivery_id), kind = self._point, literal(self._kind)
        while True:
            page = tx.all(
                f"select id, lane, due_at from deliveries where state = 'pending' and kind = {kind}"
                " and due_at <= :now and (due_at, id) > (:due_at, :id) order by due_at, id limit :page",
                now=now,
                due_at=due_at,
                id=delivery_id,
                page=PAGE,
            )
            yield from page
            if len(page) < PAGE:
                return
            due_at, delivery_id = page[-1]["due_at"], page[-1]["id"]
