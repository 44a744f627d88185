"""DKIM keys of domains, RSA and Ed25519 in parallel, and their rotation."""

from collections.abc import Collection
from typing import Literal

from msgspec import Struct, structs

from postroom.clock import DAY
from postroom.errors import NothingToDo
from postroom.storage.database import Row, Tx, delete, insert_new, item_from_row
from postroom_mail.authentication import dkim

FIRST_SELECTOR = "postroom"
OVERLAP = 7 * DAY  # how long email signed by an old key may be under way, and its record is needed
REMEMBERED = 30 * DAY  # how long a complaint may be proven by the signature of an old key

KeyState = Literal["waiting", "active", "retired"]


class DkimKey(Struct, frozen=True):
    """A key is active unless created otherwise."""

    selector: str
    private_key: bytes
    algorithm: dkim.Algorithm = dkim.RSA
    created_at: int = 0
    active_at: int | None = 0
    retired_at: int | None = None

    @classmethod
    def from_row(cls, row: Row) -> "DkimKey":
        return item_from_row(cls, row, private_key=bytes(row["private_key"]))

    @property
    def state(self) -> KeyState:
        if self.retired_at is not None:
            return "retired"
        return "waiting" if self.active_at is None else "active"

    @property
    def removable_at(self) -> int | None:
        """From then on its record is no longer needed."""
        return None if self.retired_at is None else self.retired_at + OVERLAP

    def name_below(self, domain: str) -> str:
        return f"{self.selector}._domainkey.{domain}"


def add_first(tx: Tx, owner: str, domain: str, private_key: bytes, now: int) -> None:
    """Add the first keys. RSA signs at once; Ed25519 waits for its record, since fewer receivers check it."""
    if list_of(tx, owner, domain):
        return
    add(tx, owner, domain, DkimKey(FIRST_SELECTOR, private_key, dkim.RSA, now, now))
    ed25519 = dkim.generate_ed25519_key()
    add(tx, owner, domain, DkimKey(f"{FIRST_SELECTOR}-ed25519", ed25519, dkim.ED25519, now, None))


def add(tx: Tx, owner: str, domain: str, key: DkimKey) -> None:
    insert_new(tx, "dkim_keys", owner=owner, domain=domain, **structs.asdict(key))


def list_of(tx: Tx, owner: str, domain: str) -> list[DkimKey]:
    """List the keys, oldest first, RSA before Ed25519."""
    rows = tx.all(
        "select * from dkim_keys where owner = :owner and domain = :domain"
        " order by created_at, algorithm desc, selector",
        owner=owner,
        domain=domain,
    )
    return [DkimKey.from_row(row) for row in rows]


def list_active(tx: Tx, owner: str, domain: str) -> list[DkimKey]:
    return [key for key in list_of(tx, owner, domain) if key.state == "active"]


def list_waiting(tx: Tx, owner: str, domain: str) -> list[DkimKey]:
    return [key for key in list_of(tx, owner, domain) if key.state == "waiting"]


def require_none_waiting(tx: Tx, owner: str, domain: str) -> None:
    if any(key.algorithm == dkim.RSA for key in list_waiting(tx, owner, domain)):
        raise NothingToDo("New keys already wait for their records: publish those, then verify the domain.")


def begin_rotation(tx: Tx, owner: str, domain: str, private_key: bytes, now: int) -> None:
    """Add a new key of each kind. They wait for their records; the active keys sign until then.

    A domain without keys, as right after the first start, gets its first ones.
    """
    require_none_waiting(tx, owner, domain)
    if not list_of(tx, owner, domain):
        add_first(tx, owner, domain, private_key, now)
        return
    for key in list_waiting(tx, owner, domain):  # of Ed25519, never published
        remove(tx, owner, domain, key.selector)
    selector = f"{FIRST_SELECTOR}-{now // 1000:x}"
    ed25519 = dkim.generate_ed25519_key()
    add(tx, owner, domain, DkimKey(selector, private_key, dkim.RSA, now, None))
    add(tx, owner, domain, DkimKey(f"{selector}-ed25519", ed25519, dkim.ED25519, now, None))


def activate(tx: Tx, owner: str, domain: str, selectors: Collection[str], now: int) -> list[str]:
    """Activate those of the keys that wait, and retire the old ones of the same algorithm.

    Returns the selectors of the keys that became active.
    """
    found = [key for key in list_waiting(tx, owner, domain) if key.selector in selectors]
    for key in found:
        tx.run(
            "update dkim_keys set retired_at = :now where owner = :owner and domain = :domain"
            " and algorithm = :algorithm and active_at is not null and retired_at is null",
            now=now,
            owner=owner,
            domain=domain,
            algorithm=key.algorithm,
        )
        tx.run(
            "update dkim_keys set active_at = :now where owner = :owner and domain = :domain"
            " and selector = :selector",
            now=now,
            owner=owner,
            domain=domain,
            selector=key.selector,
        )
    return [key.selector for key in found]


def remove(tx: Tx, owner: str, domain: str, selector: str) -> None:
    delete(tx, "dkim_keys", owner=owner, domain=domain, selector=selector)


def remove_all(tx: Tx, owner: str, domain: str) -> None:
    delete(tx, "dkim_keys", owner=owner, domain=domain)
