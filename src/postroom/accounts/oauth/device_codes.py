"""Programs without a browser: they show a code and wait until a person has compared and approved it."""

import secrets

from msgspec import Struct

from postroom.accounts.keys import hash_token
from postroom.accounts.scope import Scope
from postroom.clock import MINUTE
from postroom.errors import NotFound, RateLimitExceeded
from postroom.storage.database import Row, Tx, count, insert, item_from_row

LIFETIME = 10 * MINUTE
WAITING_AN_ADDRESS = 20
WAITING, ALLOWED = "waiting", "allowed"
ALPHABET = "BCDFGHJKLMNPQRSTVWXZ"  # letters that form no words and are not confused (RFC 8628, 6.1)


class DeviceCode(Struct, frozen=True):
    request_hash: str
    user_code: str
    state: str
    address: str
    maker_id: str | None
    within: Scope | None
    permissions: tuple[str, ...]

    @classmethod
    def from_row(cls, row: Row) -> "DeviceCode":
        account_id = row["account_id"]
        return item_from_row(
            cls,
            row,
            within=None if account_id is None else Scope(account_id, row["pod_id"], row["inbox_id"]),
            permissions=tuple((row["permissions"] or "").split()),
        )


def add(tx: Tx, request_id: str, address: str, now: int) -> DeviceCode:
    waiting = "from device_codes where address = :address and expires_at > :now"
    if count(tx, f"select count(*) as number {waiting}", address=address, now=now) >= WAITING_AN_ADDRESS:
        raise RateLimitExceeded(
            "Too many sign-ins from this address are waiting. Try again in a minute.", retry_after=60
        )
    letters = "".join(secrets.choice(ALPHABET) for _ in range(8))
    code = DeviceCode(
        hash_token(request_id), f"{letters[:4]}-{letters[4:]}", WAITING, address, None, None, ()
    )
    insert(
        tx,
        "device_codes",
        request_hash=code.request_hash,
        user_code=code.user_code,
        state=WAITING,
        address=address,
        name="",
        expires_at=now + LIFETIME,
    )
    return code


def find_waiting(tx: Tx, user_code: str, now: int) -> DeviceCode:
    row = tx.one(
        "select * from device_codes where user_code = :user_code and state = 'waiting' and expires_at > :now",
        user_code=user_code.strip().upper(),
        now=now,
    )
    if row is None:
        raise NotFound("No program waits with this code. It may have expired: start again there.")
    return DeviceCode.from_row(row)


def allow(tx: Tx, code: DeviceCode, maker_id: str, within: Scope, permissions: tuple[str, ...]) -> None:
    changed = tx.run(
        "update device_codes set state = 'allowed', maker_id = :maker_id, account_id = :account_id,"
        " pod_id = :pod_id, inbox_id = :inbox_id, permissions = :permissions"
        " where request_hash = :request_hash and state = 'waiting'",
        maker_id=maker_id,
        account_id=within.account_id,
        pod_id=within.pod_id,
        inbox_id=within.inbox_id,
        permissions=" ".join(permissions),
        request_hash=code.request_hash,
    )
    if not changed:
        raise NotFound("This program was already allowed or refused.")


def remove(tx: Tx, request_hash: str) -> bool:
    return tx.run("delete from device_codes where request_hash = :hash", hash=request_hash) == 1


def find(tx: Tx, request_id: str, now: int) -> DeviceCode | None:
    row = tx.one(
        "select * from device_codes where request_hash = :hash and expires_at > :now",
        hash=hash_token(request_id),
        now=now,
    )
    return None if row is None else DeviceCode.from_row(row)
