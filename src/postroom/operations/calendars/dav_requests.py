"""A request of a CalDAV client, once the HTTP server knows who asks, and its answer."""

from collections.abc import Awaitable, Callable, Mapping

from msgspec import Struct

from postroom.accounts.keys import Caller
from postroom.mailbox.inboxes import Inbox


class DavRequest(Struct, frozen=True):
    """`path` is decoded; names of `headers` are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    caller: Caller
    inbox: Inbox
    traceparent: str = ""


class DavAnswer(Struct, frozen=True):
    status: int
    body: bytes = b""
    headers: Mapping[str, str] = {}


AnswerDav = Callable[[DavRequest], Awaitable[DavAnswer]]
