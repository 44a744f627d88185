"""Drafts of every inbox, and what is scheduled: who wrote it, and when it goes."""

from typing import Any

from msgspec import Struct
from starlette.responses import Response

from postroom.fields import PageQuery
from postroom.mailbox import inboxes
from postroom.operations import holds, messages
from postroom.operations.holds import ApprovalQuery, MessageChange
from postroom.web.api.outward import drafts as api
from postroom.web.dashboard.desk import INBOXES_SHOWN, Desk, go
from postroom.web.dashboard.display.values import plain

PATH = "/app/drafts"
SHOWN = 50


class NewMoment(Struct, rename="camel", frozen=True):
    """UTC, unless the script of the page said the same moment in `send_at_utc`."""

    send_at: str
    send_at_utc: str = ""


async def show_drafts(desk: Desk) -> Response:
    found, _ = await desk.call.resources.db.read(inboxes.list_within, desk.call.reach, INBOXES_SHOWN, 0)
    shown: list[dict[str, Any]] = []
    for inbox in found:
        page = plain(await api.list_drafts(desk.call, inbox.id, PageQuery(SHOWN, 0)))
        shown += [{**draft, "address": inbox.address} for draft in page["data"]]
    asked = ApprovalQuery("scheduled", None, None, SHOWN, 0)
    scheduled = plain(await desk.run(holds.list_approvals, query=asked))["data"]
    waiting = [each for each in scheduled if each["message"]["status"] == "pending"]
    return await desk.show("drafts.html", "drafts", title="Drafts", drafts=shown, scheduled=waiting)


async def cancel_scheduled(desk: Desk, message_id: str) -> Response:
    await desk.run(messages.cancel_message, message_id=message_id)
    return go(PATH, "Cancelled. It will not leave.")


async def reschedule(desk: Desk, message_id: str, body: NewMoment) -> Response:
    moment = MessageChange(body.send_at_utc or f"{body.send_at}:00Z")
    await desk.run(holds.change_message, message_id=message_id, body=moment)
    return go(PATH, "It goes at another time.")
