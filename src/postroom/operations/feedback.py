"""Operations on feedback: any key gives it, the operator reads it."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Raw, Struct

from postroom.accounts.keys import Caller
from postroom.errors import BadRequest
from postroom.events import feedback
from postroom.limits import FEEDBACK_CONTEXT_BYTES
from postroom.operations import operator
from postroom.storage.database import Tx

FeedbackType = Literal["bug", "friction", "feature_request"]
FeedbackText = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=feedback.MESSAGE_CHARACTERS,
        description="What happened, what was in the way, or what is missing.",
        examples=["The search finds no email by the name of a file."],
        extra_json_schema={"pattern": r"^[^\x00]*[^\x00\s][^\x00]*$"},
    ),
]
FeedbackContext = Annotated[
    dict[str, Raw],
    Meta(
        description="Anything that helps to understand it: an object of at most 8 kB.",
        examples=[{"route": "GET /v1/search", "attempts": 3}],
    ),
]


class NewFeedback(Struct, frozen=True):
    type: Annotated[FeedbackType, Meta(description="What kind of feedback it is.")]
    message: FeedbackText
    context: FeedbackContext | None = None


class GivenFeedback(Struct, frozen=True):
    id: str


def give_feedback(tx: Tx, caller: Caller, body: NewFeedback, now: int) -> GivenFeedback:
    """Report a bug, friction or something missing to the operator"""
    message = _require_text(body.message)
    context = None if body.context is None else _require_short(body.context)
    return GivenFeedback(feedback.add(tx, caller, body.type, message, context, now).id)


def _require_text(message: str) -> str:
    if "\0" in message or not message.strip():
        raise BadRequest("message must be text, and not empty.", field="message")
    return message


def _require_short(context: dict[str, Raw]) -> str:
    encoded = msgspec.json.encode(context)
    if len(encoded) > FEEDBACK_CONTEXT_BYTES:
        raise BadRequest(f"context has more than {FEEDBACK_CONTEXT_BYTES:,} bytes.", field="context")
    return encoded.decode()


def list_feedback(tx: Tx, caller: Caller, kind: str | None, limit: int) -> list[feedback.Feedback]:
    operator.require_operator(tx, caller)
    return feedback.list_newest(tx, kind, limit)


def remove_feedback(tx: Tx, caller: Caller, feedback_id: str, now: int) -> None:
    operator.require_operator(tx, caller)
    known = feedback.get(tx, feedback_id)
    feedback.remove(tx, known.id)
    operator.record(tx, caller, "feedback.removed", known.account_id, now, known.id)
