"""Resolves the names in paths of /v0: an inbox by its address, a message by its Message-ID."""

from urllib.parse import unquote

from msgspec.structs import replace

from postroom import ids
from postroom.accounts import domains, pods
from postroom.accounts.keys import Caller
from postroom.accounts.scope import Scope
from postroom.errors import ApiError, BadRequest, NotFound, no_such
from postroom.limits import ADDRESS_CHARACTERS
from postroom.mailbox import drafts, inboxes, keyset_listing, messages, threads
from postroom.mailbox.inboxes import Inbox
from postroom.mailbox.messages import Message
from postroom.mailbox.threads import Thread
from postroom.resources import Tx
from postroom.web.agentmail import showing
from postroom.web.call import Call
from postroom.web.routing import Found, Router
from postroom_mail.mime.address import mailbox_of

PREFIX = "/v0/"
# What has no counterpart here, by the words of a path; refused before authentication.
NO_COUNTERPART = frozenset(
    (
        "accounts",
        "agent",
        "apps",
        "providers",
        "files",
        "calendar",
        "authorize",
        "labs",
        "polling",
        "agent-armor",
    )
)


def find(router: Router, method: str, path: str) -> Found | ApiError:
    """Find a route. A Message-ID may contain slashes: it goes from its `<` to the last `>`."""
    if "\0" in path:
        return router.find_segments(method, path, [])
    segments = split(path)
    words = {each for each in segments[1:] if not each.startswith("<")}
    found = router.find_segments(method, path, segments)
    is_other = isinstance(found, ApiError) or found[1].get("webhook_id") in NO_COUNTERPART
    if is_other and words & NO_COUNTERPART:
        raise NotFound("This has no counterpart here. The documentation says what works.")
    return found


def split(path: str) -> list[str]:
    head, mark, rest = path[1:].partition("/messages/<")
    end = rest.rfind(">")
    if not mark or end == -1:
        return path[1:].split("/")
    behind = rest[end + 1 :].split("/")[1:] if rest[end + 1 :].startswith("/") else []
    return [*head.split("/"), "messages", f"<{rest[: end + 1]}", *behind]


async def resolve(call: Call, values: dict[str, str]) -> tuple[Call, dict[str, str]]:
    """Replaces names by our ids, and adds the inbox that the path names."""
    inbox, named = await call.resources.db.read(look_up, call.caller, values)
    return replace(call, inbox=inbox), named


def look_up(tx: Tx, caller: Caller, values: dict[str, str]) -> tuple[Inbox | None, dict[str, str]]:
    """Look up the names of a path, each within the one before it."""
    named, within, inbox = dict(values), caller.scope, None
    if "pod_id" in values:
        named["pod_id"] = pods.get(tx, within, values["pod_id"]).id
        within = Scope(within.account_id, named["pod_id"], within.inbox_id)
    if "inbox_id" in values:
        inbox = get_inbox(tx, within, values["inbox_id"])
        named["inbox_id"], within = inbox.id, inbox.scope
    if inbox is not None and "message_id" in values:
        named["message_id"] = find_message(tx, inbox, values["message_id"])
        require_shown(tx, caller, messages.get_outline(tx, within, named["message_id"]))
    if "thread_id" in values:
        require_shown(tx, caller, threads.get(tx, within, values["thread_id"]))
    if "draft_id" in values:
        drafts.get(tx, within, values["draft_id"])
    if "domain_id" in values:
        named["domain_id"] = find_domain(tx, within, values["domain_id"])
    return inbox, named


def require_shown(tx: Tx, caller: Caller, found: Message | Thread) -> None:
    """Require the labels to be visible.

    For a key without permission for some labels, nothing with them exists.
    """
    if hidden := showing.hidden_from(caller):
        if isinstance(found, Thread):
            (thread,) = showing.show_threads(tx, [found])
            given = thread.labels
        else:
            (message,) = showing.show_messages(tx, [found])
            given = message.labels
        if hidden & set(given):
            raise no_such("thread" if isinstance(found, Thread) else "message")


def find_domain(tx: Tx, within: Scope, name: str) -> str:
    """Return the id of a domain, named by its id or domain name."""
    found = None if "\0" in name else domains.find_by_name(tx, within, name)
    domain_id = name if found is None else found.id
    if domain_id != domains.SERVICE_ID:
        domains.get(tx, within, domain_id)
    return domain_id


def get_inbox(tx: Tx, scope: Scope, name: str) -> Inbox:
    inbox = find_inbox(tx, scope, name)
    if inbox is None:
        raise no_such("inbox")
    return inbox


def find_inbox(tx: Tx, scope: Scope, name: str) -> Inbox | None:
    """Return an inbox, named by its address or id."""
    if ids.is_id(ids.INBOX, name):
        inbox = inboxes.find(tx, name)
    elif "@" not in name or len(name) > ADDRESS_CHARACTERS or "\0" in name:
        return None
    else:
        inbox = inboxes.find_by_address(tx, mailbox_of(unquote(name)))
    return inbox if inbox is not None and inboxes.is_within(inbox, scope) else None


def find_message(tx: Tx, inbox: Inbox, name: str) -> str:
    """Return the id of a message of this inbox."""
    if ids.is_id(ids.MESSAGE, name):
        return messages.get_outline(tx, inbox.scope, name).id
    found = None if "\0" in name else keyset_listing.find_by_rfc_id(tx, inbox.id, name)
    if found is None:
        raise no_such("message")
    return found


def inbox_ids_of(tx: Tx, scope: Scope, given: list[str], field: str) -> list[str]:
    """Return the ids of inboxes that a body names."""
    found = [find_inbox(tx, scope, name) for name in given]
    if None in found:
        raise BadRequest(f"{field} names an inbox that does not exist.", field=field)
    return [inbox.id for inbox in found if inbox is not None]
