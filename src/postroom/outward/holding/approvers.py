"""Who counts as one person where several must approve, and that nobody approves their own mail."""

from msgspec.structs import replace

from postroom.accounts import actors, keys
from postroom.accounts.actors import Actor
from postroom.accounts.keys import Caller
from postroom.accounts.people import users
from postroom.accounts.people.users import User
from postroom.accounts.permissions import APPROVE
from postroom.errors import Forbidden, Unauthorized
from postroom.mailbox.holds import GivenApproval, Hold
from postroom.storage.database import Tx


def of_caller(caller: Caller) -> str:
    """A user and all keys made by the user are one person, as are a key and all keys made by it."""
    return caller.lineage[0] if caller.lineage else caller.key_id


def of_reviewer(tx: Tx, account_id: str, address: str) -> str:
    """A reviewer who is also a user is one person."""
    user = users.find_by_email(tx, account_id, address)
    return address if user is None else user.key_id


def require_still_may_approve(tx: Tx, caller: Caller) -> None:
    """Checked in the deciding transaction: the role or key may be gone since the request came."""
    users.require_still(tx, caller, APPROVE)
    key = keys.find(tx, caller.account_id, caller.key_id)
    if key is None:
        raise Unauthorized("This API key is not valid. It may have been revoked.")
    if APPROVE not in key.permissions:
        raise Forbidden("This key may not do that: it needs the permission approve. Use a key that has it.")


def add_approval(tx: Tx, hold: Hold, given: GivenApproval) -> Hold:
    """Keeps earlier approvals that still count. The caller has locked the message."""
    if given.person == hold.key_id and _is_of_a_user(tx, hold):
        raise Forbidden("You cannot approve your own email: another person has to.")
    earlier = [each for each in hold.approvals if _still_counts(tx, hold, each.actor)]
    if any(each.person == given.person for each in earlier):
        raise Forbidden("You have already approved this. Another person has to.")
    return replace(hold, approvals=(*earlier, given))


def _is_of_a_user(tx: Tx, hold: Hold) -> bool:
    key = keys.find(tx, hold.account_id, hold.key_id)
    return key is not None and key.kind == keys.USER


def _still_counts(tx: Tx, hold: Hold, actor: Actor) -> bool:
    """An approval does not count if its giver was removed or may no longer approve."""
    if actor.type == actors.USER:
        user = users.find(tx, actor.id)
        return user is not None and _may_approve(user, hold)
    if actor.type == actors.KEY:
        key = keys.find(tx, hold.account_id, actor.id)
        return key is not None and APPROVE in key.permissions
    return True


def _may_approve(user: User, hold: Hold) -> bool:
    has_pod = not user.pod_ids or hold.pod_id in user.pod_ids
    return user.state == users.ACTIVE and has_pod and APPROVE in users.PERMISSIONS[user.role]
