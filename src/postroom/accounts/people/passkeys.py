"""Passkeys: keys held by a user's devices; only the public half is stored here (WebAuthn)."""

from msgspec import Struct

from postroom import ids
from postroom.accounts import names
from postroom.accounts.people.users import User
from postroom.errors import BadRequest, NotFound, Unauthorized
from postroom.storage.database import Row, Tx, insert_item, item_from_row, update

PASSKEYS_OF_A_USER = 20
DEFAULT_NAME = "Passkey"


class Passkey(Struct, frozen=True):
    id: str
    account_id: str
    user_id: str
    credential_id: str  # as the browser writes it, in base64url
    public_key: bytes
    sign_count: int
    name: str
    created_at: int
    last_used_at: int | None

    @classmethod
    def from_row(cls, row: Row) -> "Passkey":
        return item_from_row(cls, row, public_key=bytes(row["public_key"]))


def add(
    tx: Tx, user: User, credential_id: str, public_key: bytes, sign_count: int, name: str, now: int
) -> Passkey:
    names.require_clean(name, "name")
    if len(list_of_user(tx, user.id)) >= PASSKEYS_OF_A_USER:
        raise BadRequest(f"A user has at most {PASSKEYS_OF_A_USER} passkeys. Remove one first.")
    if find_by_credential(tx, credential_id) is not None:
        raise BadRequest("This passkey is already registered here.")
    passkey = Passkey(
        id=ids.new(ids.PASSKEY, now),
        account_id=user.account_id,
        user_id=user.id,
        credential_id=credential_id,
        public_key=public_key,
        sign_count=sign_count,
        name=name.strip() or DEFAULT_NAME,
        created_at=now,
        last_used_at=None,
    )
    insert_item(tx, "passkeys", passkey)
    return passkey


def list_of_user(tx: Tx, user_id: str) -> list[Passkey]:
    rows = tx.all("select * from passkeys where user_id = :id order by created_at, id", id=user_id)
    return [Passkey.from_row(row) for row in rows]


def find_by_credential(tx: Tx, credential_id: str) -> Passkey | None:
    row = tx.one("select * from passkeys where credential_id = :id", id=credential_id)
    return None if row is None else Passkey.from_row(row)


def get(tx: Tx, user_id: str, passkey_id: str) -> Passkey:
    row = ids.is_id(ids.PASSKEY, passkey_id) and tx.one(
        "select * from passkeys where id = :id and user_id = :user_id", id=passkey_id, user_id=user_id
    )
    if not row:
        raise NotFound("No such passkey. It may have been removed.")
    return Passkey.from_row(row)


def rename(tx: Tx, passkey: Passkey, name: str) -> None:
    names.require_clean(name, "name")
    update(tx, "passkeys", passkey.id, name=name.strip() or DEFAULT_NAME)


def remove(tx: Tx, passkey: Passkey) -> None:
    tx.run("delete from passkeys where id = :id", id=passkey.id)


def mark_used(tx: Tx, passkey: Passkey, sign_count: int, now: int) -> None:
    """Record a sign-in.

    Refuse it if the passkey was used or removed since: of two with the same count, one is a copy.
    """
    is_same = tx.run(
        "update passkeys set sign_count = :sign_count, last_used_at = :now"
        " where id = :id and sign_count = :seen",
        sign_count=sign_count,
        now=now,
        id=passkey.id,
        seen=passkey.sign_count,
    )
    if not is_same:
        raise Unauthorized("This passkey was used or removed at the same time. Try again.")
