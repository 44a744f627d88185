"""Feedback of all accounts, read by who runs the server."""

from typing import Literal

from msgspec import Struct
from starlette.responses import Response

from postroom.accounts.people.feedback import TYPES
from postroom.operations.people import feedback
from postroom.web.dashboard.desk import Desk, go
from postroom.web.dashboard.display import sheets

PATH = "/app/operator/feedback"
SHOWN = 200
EXPORTED = 10_000


class FeedbackQuery(Struct, frozen=True):
    type: Literal["", "bug", "friction", "feature_request"] = ""


async def show_feedback(desk: Desk, query: FeedbackQuery) -> Response:
    call = desk.call
    found = await call.resources.db.read(feedback.list_feedback, call.caller, query.type or None, SHOWN)
    return await desk.show(
        "feedback.html", "operator", title="Feedback", found=found, types=TYPES, query=query
    )


async def export(desk: Desk) -> Response:
    call = desk.call
    found = await call.resources.db.read(feedback.list_feedback, call.caller, None, EXPORTED)
    head = ("id", "createdAt", "account", "key", "keyName", "type", "message", "context")
    rows = [
        (
            each.id,
            each.created_at,
            each.account_id,
            each.key_id,
            each.key_name,
            each.type,
            each.message,
            each.context,
        )
        for each in found
    ]
    return sheets.to_file("feedback.csv", head, rows)


async def remove(desk: Desk, feedback_id: str) -> Response:
    call = desk.call
    await call.resources.db.write(feedback.remove_feedback, call.decider, feedback_id, call.now())
    return go(PATH, "Removed.")
