"""What a person in charge asks and does: held mail, pauses, budgets."""

from datetime import datetime
from typing import Literal

from postroom_client.calls.calls import given
from postroom_client.calls.sending import spell_moment
from postroom_client.charge_results import Approval, InboxLimits, Pause
from postroom_client.results import Message, Page
from postroom_client.transport.exchange import Call, decoded, path, present

HoldState = Literal["held", "scheduled", "approved", "released", "rejected", "expired", "cancelled"]


def list_approvals(
    *,
    state: HoldState = "held",
    inbox_id: str | None = None,
    pod_id: str | None = None,
    limit: int = 50,
    offset: int = 0,
) -> Call[Page[Approval]]:
    """The sends that wait for a decision, oldest first; or those in another state, newest first."""
    query = present(state=state, inboxId=inbox_id, podId=pod_id, limit=limit, offset=offset)
    return Call("GET", "/v1/approvals", decoded(Page[Approval]), query=query)


def approve_message(message_id: str, content_hash: str, *, note: str | None = None) -> Call[Message]:
    """Let a held message go. `content_hash` is that of the content you have seen."""
    body = given({"contentHash": content_hash, "note": note})
    target = path("v1", "messages", message_id, "approve")
    return Call("POST", target, decoded(Message), json=body, is_repeatable=False)


def reject_message(message_id: str, *, note: str | None = None) -> Call[Message]:
    """Refuse a held message, for good."""
    target = path("v1", "messages", message_id, "reject")
    return Call("POST", target, decoded(Message), json=given({"note": note}), is_repeatable=False)


def reschedule_message(message_id: str, send_at: datetime | str) -> Call[Message]:
    """Give a scheduled message another moment."""
    body = {"sendAt": spell_moment(send_at)}
    return Call("PATCH", path("v1", "messages", message_id), decoded(Message), json=body)


def release_message(message_id: str) -> Call[Message]:
    """Let in what a policy stopped, as if it came now."""
    target = path("v1", "messages", message_id, "release")
    return Call("POST", target, decoded(Message), is_repeatable=False)


def get_pause(*, inbox_id: str | None = None, pod_id: str | None = None) -> Call[Pause]:
    """Whether sending is paused; without inbox and pod, for all that the key reaches."""
    return Call("GET", "/v1/pause", decoded(Pause), query=present(inboxId=inbox_id, podId=pod_id))


def pause(*, inbox_id: str | None = None, pod_id: str | None = None) -> Call[Pause]:
    """Hold every send, new and waiting, until the pause ends."""
    return Call("PUT", "/v1/pause", decoded(Pause), query=present(inboxId=inbox_id, podId=pod_id))


def resume(*, inbox_id: str | None = None, pod_id: str | None = None) -> Call[Pause]:
    """End a pause; what nothing else holds goes."""
    return Call("DELETE", "/v1/pause", decoded(Pause), query=present(inboxId=inbox_id, podId=pod_id))


def get_inbox_limits(inbox_id: str) -> Call[InboxLimits]:
    """How much an inbox may send, and has sent."""
    return Call("GET", path("v1", "inboxes", inbox_id, "limits"), decoded(InboxLimits))
