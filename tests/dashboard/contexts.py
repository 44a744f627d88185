"""Desks for tests of what pages read: a person and a database, without a server."""

import asyncio
from pathlib import Path
from typing import Any, cast

from starlette.requests import Request

from postroom.accounts.keys import Caller
from postroom.accounts.sessions import Session
from postroom.mailbox import holds, messages
from postroom.mailbox.holds import Hold
from postroom.mailbox.inboxes import Inbox
from postroom.mailbox.messages import Message
from postroom.resources import Resources
from postroom.storage.database import Database, Tx
from postroom.web.call import Call
from postroom.web.dashboard.page_context import PageContext
from tests.conftest import settings
from tests.doubles import START, FakeClock
from tests.stored import put_mail

CONFIG = settings(Path("nowhere"))


def context_of(db: Database, caller: Caller, query: str = "") -> PageContext:
    unused = cast(Any, None)
    resources = Resources(CONFIG, db, unused, FakeClock(), unused, asyncio.Event())
    scope = {"type": "http", "method": "GET", "path": "/app", "query_string": query.encode(), "headers": []}
    session = Session(
        id=caller.session_id or "ses_1",
        account_id=caller.account_id,
        key_id=caller.key_id,
        name="Ann",
        is_operator=False,
        by_key=False,
        address="192.0.2.7",
        user_agent="",
        created_at=START,
        last_used_at=START,
        expires_at=START + 1,
        user_id=caller.user_id,
        pod_id=caller.pod_id,
    )
    return PageContext(Call(resources, caller, Request(scope), unused, None), session, unused)


def put_held(
    tx: Tx, inbox: Inbox, subject: str, *, key_id: str = "key_1", reasons: tuple[str, ...] = ("always",)
) -> Message:
    """A mail that waits."""
    message = put_mail(tx, inbox, subject=subject)
    holds.put(
        tx,
        Hold(
            message_id=message.id,
            account_id=inbox.account_id,
            pod_id=inbox.pod_id,
            inbox_id=inbox.id,
            key_id=key_id,
            state=holds.HELD,
            reasons=reasons,
            content_hash="hash",
            bcc=("secret@there.example",),
            is_paused=reasons == (holds.PAUSED,),
            expires_at=None,
            send_at=None,
            let_go_at=None,
            due_at=None,
            created_at=START,
        ),
    )
    found = messages.find(tx, message.id)
    assert found is not None
    return found
