"""What a path of /v0 names: an inbox by its address, a message by its Message-ID."""

from urllib.parse import unquote

from msgspec.structs import replace

from postroom import ids
from postroom.accounts import pods
from postroom.accounts.reach import Reach
from postroom.errors import ApiError, BadRequest, NotFound
from postroom.mail.address import mailbox_of
from postroom.mailbox import drafts, inboxes, messages, threads
from postroom.mailbox.inboxes import Inbox
from postroom.mailbox.search import listing
from postroom.resources import Tx
from postroom.web.call import Call
from postroom.web.routing import Found, Router

PREFIX = "/v0/"
ADDRESS_CHARACTERS = 320
# What has no counterpart here, by the words of a path; said before anybody is asked who he is.
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
    """A Message-ID may hold slashes: it goes from its `<` to the last `>`."""
    if "\0" in path:
        return router.find_segments(method, path, [])
    segments = split(path)
    words = {each for each in segments[1:] if not each.startswith("<")}
    found = router.find_segments(method, path, segments)
    if isinstance(found, ApiError) and words & NO_COUNTERPART:
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
    """With our ids in the place of the names, and the inbox that the path names."""
    inbox, named = await call.resources.db.read(look_up, call.reach, values)
    return replace(call, inbox=inbox), named


def look_up(tx: Tx, reach: Reach, values: dict[str, str]) -> tuple[Inbox | None, dict[str, str]]:
    named = dict(values)
    if "inbox_id" not in values:
        require_in_pod(tx, reach, values)
        return None, named
    inbox = find_inbox(tx, reach, values["inbox_id"])
    if inbox is None:
        raise NotFound("No such inbox.")
    if "pod_id" in values and pods.get(tx, reach, values["pod_id"]).id != inbox.pod_id:
        raise NotFound("No such inbox.")
    named["inbox_id"] = inbox.id
    if "message_id" in values:
        named["message_id"] = find_message(tx, inbox, values["message_id"])
    if "thread_id" in values and threads.get(tx, reach, values["thread_id"]).inbox_id != inbox.id:
        raise NotFound("No such thread.")
    if "draft_id" in values and drafts.get(tx, reach, values["draft_id"]).inbox_id != inbox.id:
        raise NotFound("No such draft.")
    return inbox, named


def require_in_pod(tx: Tx, reach: Reach, values: dict[str, str]) -> None:
    """A thread or a draft lies in the pod that stands before it."""
    if "pod_id" not in values:
        return
    within = Reach(reach.account_id, pods.get(tx, reach, values["pod_id"]).id, reach.inbox_id)
    if "thread_id" in values:
        threads.get(tx, within, values["thread_id"])
    if "draft_id" in values:
        drafts.get(tx, within, values["draft_id"])


def find_inbox(tx: Tx, reach: Reach, name: str) -> Inbox | None:
    """By its address, or by its id."""
    if ids.is_id(ids.INBOX, name):
        inbox = inboxes.find(tx, name)
    elif "@" not in name or len(name) > ADDRESS_CHARACTERS or "\0" in name:
        return None
    else:
        inbox = inboxes.find_by_address(tx, mailbox_of(unquote(name)))
    return inbox if inbox is not None and inboxes.is_within(inbox, reach) else None


def find_message(tx: Tx, inbox: Inbox, name: str) -> str:
    """The id of a message of this inbox."""
    if ids.is_id(ids.MESSAGE, name):
        message = messages.get(tx, inbox.reach, name)
        return message.id
    found = None if "\0" in name else listing.find_by_rfc_id(tx, inbox.id, name)
    if found is None:
        raise NotFound("No such message.")
    return found


def inbox_ids_of(tx: Tx, reach: Reach, given: list[str], field: str) -> list[str]:
    """Of a body that names inboxes."""
    found = [find_inbox(tx, reach, name) for name in given]
    if None in found:
        raise BadRequest(f"{field} names an inbox that is not there.", field=field)
    return [inbox.id for inbox in found if inbox is not None]
