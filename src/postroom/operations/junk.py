"""Operations on junk: say that a message is junk or is not, which moves it and teaches the filter."""

import base64
from typing import Annotated

from msgspec import Meta, Struct

from postroom.accounts import audit
from postroom.accounts.keys import Caller
from postroom.config import Config
from postroom.errors import BadRequest
from postroom.inward.junk import examples, learning, models
from postroom.limits import LESSON_BYTES, LESSONS_TOGETHER
from postroom.mailbox import inboxes, messages
from postroom.mailbox.message_json import Links
from postroom.operations.folders import teaching
from postroom.operations.messages import RawMessage, show_message
from postroom.storage.database import Tx


class JunkLessons(Struct, rename="camel", frozen=True, forbid_unknown_fields=True):
    """Emails as examples. They are not stored; what the filter learned of them cannot be read back."""

    is_junk: Annotated[bool, Meta(description="Whether all of them are junk, or wanted.")]
    messages: Annotated[
        list[str],
        Meta(min_length=1, max_length=LESSONS_TOGETHER, description="Emails (RFC 5322), in base64."),
    ]


class JunkExamples(Struct, frozen=True):
    """What the people of an account have taught its junk filter."""

    junk: Annotated[int, Meta(description="Messages that somebody called junk.")]
    wanted: Annotated[int, Meta(description="Messages that somebody called not junk.")]
    waiting: Annotated[int, Meta(description="Of both, how many the filter has yet to learn.")]


def mark_junk(tx: Tx, caller: Caller, message_id: str, config: Config, links: Links, now: int) -> RawMessage:
    """Move a received message to Junk, and teach the filter"""
    inbox = inboxes.lock(tx, messages.get(tx, caller.scope, message_id).inbox_id)
    teaching.teach(
        tx, caller, inbox, [messages.get(tx, caller.scope, message_id)], True, config.base_url, now
    )
    return show_message(tx, caller.scope, message_id, links)


def mark_not_junk(
    tx: Tx, caller: Caller, message_id: str, config: Config, links: Links, now: int
) -> RawMessage:
    """Move a message out of Junk as if it had just arrived, and teach the filter"""
    inbox = inboxes.lock(tx, messages.get(tx, caller.scope, message_id).inbox_id)
    teaching.teach(
        tx, caller, inbox, [messages.get(tx, caller.scope, message_id)], False, config.base_url, now
    )
    return show_message(tx, caller.scope, message_id, links)


def read_lessons(account_id: str, lessons: JunkLessons) -> list[examples.Lesson]:
    """Takes milliseconds an email: for a thread."""
    raws = [_decode(number, each) for number, each in enumerate(lessons.messages)]
    return [examples.to_lesson(account_id, raw, learning.read_features(raw)) for raw in raws]


def _decode(number: int, written: str) -> bytes:
    try:
        raw = base64.b64decode(written, validate=True)
    except ValueError:
        raise BadRequest(
            f"messages[{number}] is not base64: '{written[:20]}'. Encode the whole email.", field="messages"
        ) from None
    if not 0 < len(raw) <= LESSON_BYTES:
        raise BadRequest(
            f"messages[{number}] has {len(raw)} bytes. Use 1 to {LESSON_BYTES}: the first are enough.",
            field="messages",
        )
    return raw


def add_lessons(
    tx: Tx, caller: Caller, lessons: list[examples.Lesson], is_junk: bool, now: int
) -> JunkExamples:
    """Teach the junk filter with emails that are no messages here"""
    teacher = teaching.teacher_of(caller)
    examples.record_lessons(tx, caller.account_id, teacher, lessons, is_junk, now)
    detail = {"emails": len(lessons), "isJunk": is_junk}
    audit.record_by(tx, caller, "junk.taught", caller.account_id, now, after=detail)
    return get_junk_examples(tx, caller)


def get_junk_examples(tx: Tx, caller: Caller) -> JunkExamples:
    """Count what the account's people have taught the junk filter"""
    return JunkExamples(**examples.count(tx, caller.account_id))


def reset_junk_filter(tx: Tx, caller: Caller, now: int) -> None:
    """Forget what the account's people have taught the junk filter; messages stay where they are"""
    before = examples.count(tx, caller.account_id)
    examples.forget(tx, caller.account_id)
    models.forget(tx, caller.account_id)
    audit.record_by(tx, caller, "junk.reset", caller.account_id, now, before=before)
