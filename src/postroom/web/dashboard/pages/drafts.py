"""Drafts of every inbox, and what waits for its moment or for the end of a pause."""

from typing import Any

from msgspec import Struct
from starlette.responses import Response

from postroom.fields import PageQuery
from postroom.mailbox import holds as stored_holds
from postroom.mailbox import inboxes
from postroom.operations import holds, messages
from postroom.operations.holds import ApprovalQuery, HeldMessage
from postroom.operations.messages import MessageChange
from postroom.web.api.outward import drafts as api
from postroom.web.call import Tx
from postroom.web.dashboard import undo
from postroom.web.dashboard.desk import INBOXES_SHOWN, Desk, go, plain

PATH = "/app/drafts"
SHOWN = 50


class NewMoment(Struct, rename="camel", frozen=True):
    """UTC, unless the script of the page said the same moment in `send_at_utc`."""

    send_at: str
    send_at_utc: str = ""


async def show_drafts(desk: Desk) -> Response:
    found, _ = await desk.read(inboxes.list_within, desk.call.reach, INBOXES_SHOWN, 0)
    shown: list[dict[str, Any]] = []
    for inbox in found:
        page = plain(await api.list_drafts(desk.call, inbox.id, PageQuery(SHOWN, 0)))
        shown += [{**draft, "address": inbox.address} for draft in page["data"]]
    asked = ApprovalQuery("scheduled", None, None, SHOWN, 0)
    scheduled = (await desk.ask(holds.list_approvals, query=asked))["data"]
    waiting = [each for each in scheduled if each["message"]["status"] == "pending"]
    paused = plain(await desk.read(list_paused, desk))
    return await desk.show("drafts.html", "drafts", title="Drafts", drafts=shown, scheduled=waiting + paused)


def list_paused(tx: Tx, desk: Desk) -> list[HeldMessage]:
    """What nobody has to decide about: it goes on when its pause ends."""
    found, _ = stored_holds.list_within(
        tx, desk.call.reach, stored_holds.HELD, SHOWN, 0, stored_holds.FOR_ITS_PAUSE
    )
    return holds.show(tx, found, desk.call.links())


cancel_scheduled = undo.delayed(
    messages.cancel_message, PATH, "Cancelled in {seconds} seconds. It will not leave."
)


async def reschedule(desk: Desk, message_id: str, body: NewMoment) -> Response:
    moment = MessageChange(body.send_at_utc or f"{body.send_at}:00Z")
    await desk.run(messages.change_message, message_id=message_id, body=moment)
    return go(PATH, "It goes at another time.")
