"""Operations under the names of their most common uses."""

import base64
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from msgspec import UNSET, UnsetType

from postroom_client.calls import calls
from postroom_client.limits import LESSON_BYTES, LESSONS_BYTES, LESSONS_TOGETHER
from postroom_client.results import ApiKey, ApprovalRules, Budget, JunkExamples, Message, Page, Thread
from postroom_client.transport.exchange import Call, Steps


def mark_thread(thread_id: str, *, is_read: bool) -> Call[Thread]:
    """Set the read flag."""
    return calls.update_thread(thread_id, is_read=is_read)


def label_thread(thread_id: str, *, add: Sequence[str] = (), remove: Sequence[str] = ()) -> Call[Thread]:
    """Add labels to a thread, and remove some."""
    return calls.update_thread(thread_id, add_labels=add, remove_labels=remove)


def label_message(message_id: str, *, add: Sequence[str] = (), remove: Sequence[str] = ()) -> Call[Message]:
    """Add labels to one message, and remove some."""
    return calls.update_message(message_id, add_labels=add, remove_labels=remove)


def reschedule_message(message_id: str, send_at: datetime | str) -> Call[Message]:
    """Give a scheduled message another moment."""
    return calls.update_message(message_id, send_at=send_at)


def create_key(
    name: str = "",
    *,
    scope: str | None = None,
    pod_id: str | None = None,
    inbox_id: str | None = None,
    permissions: Sequence[str] | None = None,
    expires_at: datetime | str | None = None,
    approval: ApprovalRules | Mapping[str, Any] | UnsetType | None = UNSET,
    limits: Budget | Mapping[str, Any] | UnsetType | None = UNSET,
    origin_guard: Literal["hold", "mark", "off", "refuse"] | UnsetType | None = UNSET,
) -> Call[ApiKey]:
    """Create a key of the account, of a pod or of an inbox; its token is shown only now.

    `scope` is an inbox, by id or address, or a pod, by id or clientId; None is the account.
    """
    if scope is not None:
        pod_id, inbox_id = (None, scope) if _is_inbox(scope) else (scope, None)
    return calls.create_account_key(
        name,
        permissions=permissions,
        expires_at=expires_at,
        approval=approval,
        limits=limits,
        origin_guard=origin_guard,
        pod_id=pod_id,
        inbox_id=inbox_id,
    )


def _is_inbox(scope: str) -> bool:
    return scope.startswith("inb_") or "@" in scope


def list_keys(*, pod_id: str | None = None, limit: int = 50, offset: int = 0) -> Call[Page[ApiKey]]:
    """List the keys of the account with those of its pods and inboxes, or of a pod, oldest first."""
    if pod_id is None:
        return calls.list_account_keys(limit=limit, offset=offset, everywhere=True)
    return calls.list_pod_keys(pod_id, limit=limit, offset=offset)


def teach_junk(emails: Iterable[bytes], *, is_junk: bool) -> Steps[JunkExamples]:
    """Teach the junk filter with any number of emails, in as many requests as they need.

    Of an email, the first 700 kB count. After an error, teach all again: an email counts once.
    """
    examples: JunkExamples | None = None
    for together in _lessons(emails):
        examples = yield calls.teach_junk_filter(is_junk, together)
    if examples is None:
        examples = yield calls.get_junk_examples()
    return examples


def _lessons(emails: Iterable[bytes]) -> Iterator[list[str]]:
    together: list[str] = []
    size = 0
    for raw in emails:
        lesson = base64.b64encode(raw[:LESSON_BYTES]).decode()
        if len(together) >= LESSONS_TOGETHER or size + len(lesson) > LESSONS_BYTES:
            yield together
            together, size = [], 0
        together.append(lesson)
        size += len(lesson) + len('"", ')
    if together:
        yield together
