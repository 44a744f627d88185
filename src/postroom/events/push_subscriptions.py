"""Push subscriptions: browsers of users to notify when something waits (RFC 8030)."""

from msgspec import Struct

from postroom import ids
from postroom.accounts.people import users
from postroom.accounts.people.users import ACTIVE, User
from postroom.accounts.permissions import APPROVE
from postroom.errors import BadRequest, NotFound
from postroom.storage.database import Tx, insert_item, item_from_row

DEVICES_OF_A_USER = 20
RINGING_OF_AN_ACCOUNT = 200
NAME_CHARACTERS = 200


class PushSubscription(Struct, frozen=True):
    id: str
    account_id: str
    user_id: str
    endpoint: str  # a URL that the browser's maker gave it
    p256dh: str  # the browser's public key, in base64url
    auth: str
    name: str
    created_at: int
    last_error: str | None = None
    failed_at: int | None = None
    told_at: int | None = None
    ended_at: int | None = None


def add(tx: Tx, user: User, endpoint: str, p256dh: str, auth: str, name: str, now: int) -> PushSubscription:
    """Replaces the subscription of this browser, also one of another user."""
    tx.run("delete from push_subscriptions where endpoint = :endpoint", endpoint=endpoint)
    if len(list_of_user(tx, user.id)) >= DEVICES_OF_A_USER:
        raise BadRequest(f"A user has at most {DEVICES_OF_A_USER} devices. Remove one first.")
    made = PushSubscription(
        ids.new(ids.PUSH, now),
        user.account_id,
        user.id,
        endpoint,
        p256dh,
        auth,
        name[:NAME_CHARACTERS],
        now,
    )
    insert_item(tx, "push_subscriptions", made)
    return made


def list_of_user(tx: Tx, user_id: str) -> list[PushSubscription]:
    rows = tx.all("select * from push_subscriptions where user_id = :id order by created_at, id", id=user_id)
    return [item_from_row(PushSubscription, row) for row in rows]


def list_ringing(tx: Tx, account_id: str, pod_id: str) -> list[PushSubscription]:
    """List the devices of people who may decide what waits in this pod."""
    rows = tx.all(
        "select * from push_subscriptions where account_id = :id and ended_at is null"
        " order by created_at limit :limit",
        id=account_id,
        limit=RINGING_OF_AN_ACCOUNT,
    )
    found = [item_from_row(PushSubscription, row) for row in rows]
    may = {user_id: _may_decide(tx, user_id, pod_id) for user_id in {each.user_id for each in found}}
    return [each for each in found if may[each.user_id]]


def _may_decide(tx: Tx, user_id: str, pod_id: str) -> bool:
    user = users.find(tx, user_id)
    is_active = user is not None and user.state == ACTIVE
    if user is None or not is_active or APPROVE not in users.PERMISSIONS[user.role]:
        return False
    return not user.pod_ids or pod_id in user.pod_ids


def find(tx: Tx, subscription_id: str) -> PushSubscription | None:
    row = tx.one("select * from push_subscriptions where id = :id", id=subscription_id)
    return None if row is None else item_from_row(PushSubscription, row)


def remove(tx: Tx, user_id: str, subscription_id: str) -> None:
    is_removed = ids.is_id(ids.PUSH, subscription_id) and tx.run(
        "delete from push_subscriptions where id = :id and user_id = :user_id",
        id=subscription_id,
        user_id=user_id,
    )
    if not is_removed:
        raise NotFound("No such device. It may have been removed.")


def record_outcome(tx: Tx, subscription_id: str, error: str | None, is_ended: bool, now: int) -> None:
    """Record the outcome. A failure is shown next to its device until a push succeeds."""
    tx.run(
        "update push_subscriptions set last_error = :error, failed_at = :failed_at,"
        " told_at = coalesce(:told_at, told_at), ended_at = :ended_at where id = :id",
        error=error,
        failed_at=None if error is None else now,
        told_at=now if error is None else None,
        ended_at=now if is_ended else None,
        id=subscription_id,
    )
