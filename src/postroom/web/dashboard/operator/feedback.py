"""Feedback of all accounts, for the operator."""

from operator import attrgetter
from typing import Literal

from msgspec import Struct
from starlette.responses import Response

from postroom.events.feedback import TYPES
from postroom.operations import feedback
from postroom.web.dashboard.actions import decides
from postroom.web.dashboard.display import sheets
from postroom.web.dashboard.page_context import PageContext

PATH = "/app/operator/feedback"
SHOWN = 200
EXPORTED = 10_000


class FeedbackQuery(Struct, frozen=True):
    type: Literal["", "bug", "friction", "feature_request"] = ""


async def show_feedback(context: PageContext, query: FeedbackQuery) -> Response:
    found = await context.read(feedback.list_feedback, context.call.caller, query.type or None, SHOWN)
    return await context.show(
        "feedback.html", "operator", title="Feedback", found=found, types=TYPES, query=query
    )


async def export(context: PageContext) -> Response:
    found = await context.read(feedback.list_feedback, context.call.caller, None, EXPORTED)
    head = ("id", "createdAt", "account", "key", "keyName", "type", "message", "context")
    columns = attrgetter("id", "created_at", "account_id", "key_id", "key_name", "type", "message", "context")
    return sheets.to_file("feedback.csv", head, map(columns, found))


remove = decides(feedback.remove_feedback, PATH, "Removed.")
