"""Operations on users: invited, listed, changed and removed."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import replace

from postroom.accounts import accounts, audit, domains, sessions
from postroom.accounts.keys import Caller
from postroom.accounts.names import Name
from postroom.accounts.people import mail_links, users
from postroom.accounts.people.users import ACTIVE, INVITED
from postroom.config import Config
from postroom.errors import BadRequest
from postroom.external_mailboxes import address_uses
from postroom.fields import PageQuery, PodId, Timestamp, show_item
from postroom.limits import ADDRESS_CHARACTERS, INVITATION_HOURS
from postroom.mailbox import thread_states
from postroom.outward.notices import system_emails
from postroom.storage.database import Tx
from postroom_mail.mime.address import split

SIGN_IN_PATH = "/app/sign-in"

Role = Annotated[
    Literal["owner", "admin", "approver", "viewer"],
    Meta(
        description="owner: everything; admin: all but owners; approver: read, write, approve; viewer: read."
    ),
]
Email = Annotated[
    str,
    Meta(
        max_length=ADDRESS_CHARACTERS, description="The person's email address.", examples=["ann@example.org"]
    ),
]
PodIds = Annotated[list[PodId], Meta(description="Only these pods; empty: the whole account.")]


class NewUser(Struct, rename="camel", frozen=True):
    email: Email
    role: Role
    pod_ids: PodIds = []
    name: Name = ""


class UserChange(Struct, rename="camel", frozen=True):
    role: Role | UnsetType = UNSET
    pod_ids: PodIds | UnsetType = UNSET
    name: Name | UnsetType = UNSET


class User(Struct, rename="camel", frozen=True):
    """`invitationUrl` is shown only where the server captures email instead of sending it.

    `addressIsAnInbox` is shown only where an inbox of this server receives or pulls the user's email.
    """

    id: str
    email: str
    name: str
    role: Role
    pod_ids: list[str]
    state: Literal["invited", "active"]
    passkeys: int
    created_at: Timestamp
    last_seen_at: Timestamp | None
    invitation_url: str | UnsetType = UNSET
    address_is_an_inbox: Annotated[bool, Meta(description="No link is sent there.")] | UnsetType = UNSET

    @classmethod
    def of(cls, user: users.User, invitation_url: str | UnsetType = UNSET) -> "User":
        return show_item(cls, user, invitation_url=invitation_url, address_is_an_inbox=UNSET)

    @classmethod
    def seen(cls, tx: Tx, user: users.User) -> "User":
        is_inbox = address_uses.is_of_inbox(tx, user.account_id, user.email)
        return replace(cls.of(user), address_is_an_inbox=is_inbox or UNSET)


class UserPage(Struct, frozen=True):
    data: list[User]
    total: int


def create_user(tx: Tx, caller: Caller, body: NewUser, config: Config, now: int) -> User:
    """Invite a person: an email with a link that works once, for 72 hours"""
    accounts.lock(tx, caller.account_id)  # concurrent requests wait for each other
    users.require_may_give(tx, caller, body.role)
    email = require_elsewhere(tx, caller.account_id, users.require_email(body.email), config)
    pod_ids = users.require_pods(tx, caller.account_id, body.role, body.pod_ids)
    user = users.add(tx, caller.account_id, email, body.name, body.role, pod_ids, INVITED, now)
    address_uses.record(tx, user.account_id, user.id, [email])
    audit.record_by(tx, caller, "user.invited", user.id, now, after=User.of(user))
    return User.of(user, send_invitation(tx, caller, user, config, now))


def require_elsewhere(tx: Tx, account_id: str, email: str, config: Config, field: str = "email") -> str:
    """Return the address, or raise if this server has it: an agent there could sign in as the user."""
    address_uses.require_no_inbox(tx, account_id, email, field)
    if domains.is_served(tx, split(email)[1], config.domain):
        raise BadRequest("A person needs an address elsewhere: agents read the inboxes here.", field=field)
    return email


def send_invitation(tx: Tx, caller: Caller, user: users.User, config: Config, now: int) -> str | UnsetType:
    """Send an invitation; return its link if the server captures email instead of sending it."""
    token = sessions.new_token()
    mail_links.invite(tx, user, token, now)
    url = f"{config.base_url}{SIGN_IN_PATH}?invitation={token}"
    by = caller.session_name if caller.session_id is not None else caller.account_name
    text = (
        f"{by} invites you to Postroom, as {user.role} of the account {caller.account_name}.\n\n"
        f"Open this page and press its button; the link works once, within {INVITATION_HOURS} hours:\n\n"
        f"{url}\n\n"
        "If you expected nothing of the kind, do nothing.\n"
    )
    system_emails.add(tx, user.account_id, user.id, user.email, "You are invited to Postroom", text, now)
    return url if system_emails.is_captured(config) else UNSET


def list_users(tx: Tx, caller: Caller, query: PageQuery) -> UserPage:
    """List the people of the account, oldest first"""
    found = users.list_of_account(tx, caller.account_id, query.limit, query.offset)
    return UserPage([User.seen(tx, user) for user in found], users.count(tx, caller.account_id))


def get_user(tx: Tx, caller: Caller, user_id: str) -> User:
    """Get a user"""
    return User.seen(tx, users.get(tx, caller.account_id, user_id))


def change_user(tx: Tx, caller: Caller, user_id: str, body: UserChange, now: int) -> User:
    """Change a user's role, pods or name; a user who may now do less is signed out"""
    accounts.lock(tx, caller.account_id)
    user = users.get(tx, caller.account_id, user_id)
    users.require_may_give(tx, caller, user.role)
    role = user.role if body.role is UNSET else body.role
    users.require_may_give(tx, caller, role)
    asked = user.pod_ids if body.pod_ids is UNSET else body.pod_ids
    pod_ids = () if role == users.OWNER and body.pod_ids is UNSET else asked
    changed = replace(
        user,
        role=role,
        pod_ids=users.require_pods(tx, caller.account_id, role, pod_ids),
        name=user.name if body.name is UNSET else body.name,
    )
    if changed.role != users.OWNER:
        users.require_another_owner(tx, user)
    users.put(tx, changed)
    may_less = not set(users.PERMISSIONS[user.role]) <= set(users.PERMISSIONS[changed.role])
    if may_less or changed.pod_ids != user.pod_ids:
        users.end_what_exceeds(tx, changed)
    if changed.pod_ids and changed.pod_ids != user.pod_ids:
        thread_states.unassign_all(tx, user.account_id, user.id, changed.pod_ids)
    before, after = User.of(user), User.of(changed)
    audit.record_by(tx, caller, "user.changed", user.id, now, before=before, after=after)
    return after


def delete_user(tx: Tx, caller: Caller, user_id: str, now: int) -> None:
    """Remove a user, with sessions, passkeys, and the keys and grants they allowed"""
    accounts.lock(tx, caller.account_id)
    user = users.get(tx, caller.account_id, user_id)
    users.require_may_give(tx, caller, user.role)
    users.require_another_owner(tx, user)
    thread_states.unassign_all(tx, user.account_id, user.id)
    users.remove(tx, user)
    address_uses.record(tx, user.account_id, user.id, [])
    audit.record_by(tx, caller, "user.removed", user.id, now, before=User.of(user))


def invite_user(tx: Tx, caller: Caller, user_id: str, config: Config, now: int) -> User:
    """Send the invitation again; the earlier link stops working"""
    user = users.get(tx, caller.account_id, user_id)
    users.require_may_give(tx, caller, user.role)
    if user.state == ACTIVE:
        raise BadRequest("This user has already signed in and can ask for a link on the sign-in page.")
    require_elsewhere(tx, user.account_id, user.email, config)
    audit.record_by(tx, caller, "user.invited", user.id, now, after=User.of(user))
    return User.of(user, send_invitation(tx, caller, user, config, now))
