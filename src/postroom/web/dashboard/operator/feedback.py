"""Feedback of all accounts, for the operator."""

from operator import attrgetter
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
    found = await desk.read(feedback.list_feedback, desk.call.caller, query.type or None, SHOWN)
    return await desk.show(
        "feedback.html", "operator", title="Feedback", found=found, types=TYPES, query=query
    )


async def export(desk: Desk) -> Response:
    found = await desk.read(feedback.list_feedback, desk.call.caller, None, EXPORTED)
    head = ("id", "createdAt", "account", "key", "keyName", "type", "message", "context")
    columns = attrgetter("id", "created_at", "account_id", "key_id", "key_name", "type", "message", "context")
    return sheets.to_file("feedback.csv", head, map(columns, found))


async def remove(desk: Desk, feedback_id: str) -> Response:
    await desk.decide(feedback.remove_feedback, feedback_id)
    return go(PATH, "Removed.")
