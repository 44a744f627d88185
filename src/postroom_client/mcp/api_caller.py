"""Share common arguments among the tools, and call the REST API for their user."""

import base64
import binascii
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Protocol, TypeVar

import msgspec
from mcp.server.context import ServerRequestContext
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from postroom_client.calls import calls
from postroom_client.calls.arguments import NamedFile
from postroom_client.calls.waiting import LONGEST_WAIT_SECONDS
from postroom_client.errors import PostroomError
from postroom_client.limits import LONGEST_PAGE
from postroom_client.results import Me
from postroom_client.transport.exchange import Call, OutgoingFile, Steps

T = TypeVar("T")
PLAIN_TEXT = "text/plain; charset=utf-8"
Ctx = Context[Any, Any]

InboxId = Annotated[str, Field(description="Id or address of an inbox; empty: the one that auth_me names.")]
ThreadId = Annotated[str, Field(description="Id of the thread, thr_…", min_length=1)]
MessageId = Annotated[str, Field(description="Id of the message, msg_…", min_length=1)]
Limit = Annotated[int, Field(description="How many at most.", ge=1, le=LONGEST_PAGE)]
Offset = Annotated[int, Field(description="How many to skip.", ge=0)]
Addresses = Annotated[str | list[str], Field(description="One address, or a list of them.")]
Body = Annotated[str, Field(description="Plain text or HTML.", min_length=1)]
BodyHtml = Annotated[str, Field(description="HTML, where it must differ from body.")]
Timeout = Annotated[float, Field(ge=0, le=LONGEST_WAIT_SECONDS)]
ReplyAll = Annotated[bool, Field(description="true: to everybody on the last email.")]
IdempotencyKey = Annotated[
    str,
    Field(description="Requests with the same key send once in 24 hours."),
]


@dataclass(frozen=True, slots=True)
class AttachedFile:
    filename: str = ""
    text: Annotated[str | None, Field(description="The content as text.")] = None
    data_base64: Annotated[str | None, Field(description="Or in base64.")] = None
    content_type: str = ""
    upload_id: Annotated[str, Field(description="Or a file uploaded by create_file_link.")] = ""
    message_id: Annotated[str, Field(description="Or the file of this name in this email.")] = ""


Attachments = Annotated[
    list[AttachedFile] | None,
    Field(description="Files, 3 MB in total; larger ones by upload_id."),
]


class Carrier(Protocol):
    """Makes calls with the caller's key."""

    def run(self, work: Call[T] | Steps[T]) -> Awaitable[T]: ...


@dataclass(frozen=True, slots=True)
class Caller:
    """The user of the tools, and the inbox used by default."""

    carrier: Carrier
    inbox_id: str | None = None
    base_url: str = ""


CallerOf = Callable[[ServerRequestContext[Any, Any]], Caller]


class ApiCaller:
    """Calls the REST API for the user of a tool, and finds the inbox that is meant."""

    def __init__(self, caller_of: CallerOf) -> None:
        self._caller_of = caller_of

    def default_inbox_id(self, ctx: Ctx) -> str | None:
        return self._caller_of(ctx.request_context).inbox_id

    async def call(self, ctx: Ctx, work: Call[T] | Steps[T]) -> T:
        try:
            return await self._caller_of(ctx.request_context).carrier.run(work)
        except PostroomError as error:
            raise ToolError(in_own_words(msgspec.json.encode(error.to_json()).decode())) from None

    async def inbox_id(self, ctx: Ctx, asked: str) -> str:
        """Return the named inbox, else the caller's default, else the only one in the key's scope."""
        default = asked or self.default_inbox_id(ctx)
        if default:
            return default
        me: Me = await self.call(ctx, calls.me())
        if me.inbox_id is None:
            raise ToolError("Name the inbox: pass inbox_id. list_inboxes shows them all.")
        return me.inbox_id


def in_own_words(text: str) -> str:
    """Return the text with the names of the tools' arguments: mailbox_name, not mailboxName."""
    return re.sub(r"\b[a-z]+(?:[A-Z][a-z]+)+\b", lambda found: _snake(found[0]), text)


def _snake(name: str) -> str:
    return re.sub(r"([A-Z])", r"_\1", name).lower()


def decode_files(files: Sequence[AttachedFile] | None) -> list[OutgoingFile | NamedFile]:
    return [decode_file(file) for file in files or ()]


def decode_file(file: AttachedFile) -> OutgoingFile | NamedFile:
    forms = (file.text is not None, file.data_base64 is not None, bool(file.upload_id), bool(file.message_id))
    if sum(forms) != 1:
        raise ToolError("Each attachment needs one of text, data_base64, upload_id and message_id.")
    if file.upload_id:
        return {"uploadId": file.upload_id}
    if file.message_id:
        return {"attachmentOf": {"messageId": file.message_id, "filename": file.filename}}
    if file.text is not None:
        return OutgoingFile(file.filename, file.text.encode(), file.content_type or PLAIN_TEXT)
    try:
        content = base64.b64decode(file.data_base64 or "", validate=True)
    except (binascii.Error, ValueError):
        raise ToolError("data_base64 of an attachment is not base64.") from None
    return OutgoingFile(file.filename, content, file.content_type or "application/octet-stream")
