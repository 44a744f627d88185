"""Show a held email to a person, as a card of MCP Apps. The dashboard alone approves it.

The page is the same for all. What it shows comes with the result of a tool, in a part that models do not get.
"""

from importlib.resources import files
from typing import Any

import msgspec
from mcp.server.apps import APP_MIME_TYPE, EXTENSION_ID
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.extension import Extension, ResourceBinding
from mcp.server.mcpserver.resources import TextResource
from mcp.types import CallToolRequestParams, CallToolResult, TextContent

from postroom_client.calls import calls
from postroom_client.errors import PostroomError
from postroom_client.mcp.api_caller import Caller, CallerOf
from postroom_client.mcp.tasks import approval_url
from postroom_client.results import Message

URI = "ui://postroom/approval.html"
SHOWN_BY = ("send_email", "reply_to_thread", "forward_message", "send_draft", "get_message_status")
KEY = "postroom/approval"  # in `_meta` of a result
TEXT_CHARACTERS = 20_000
MOST_SHOWN = 100  # recipients, and files
NAME_CHARACTERS = 1_000  # a subject has at most 998
Ctx = ServerRequestContext[Any, Any]
Json = dict[str, Any]


class ApprovalCard(Extension):
    identifier = EXTENSION_ID

    def __init__(self, caller_of: CallerOf) -> None:
        self._caller_of = caller_of

    def resources(self) -> list[ResourceBinding]:
        page = files("postroom_client.mcp").joinpath("approval_card.html").read_text("utf-8")
        resource = TextResource(
            uri=URI,
            name="approval",
            title="Approval",
            description="Shows an email that waits for approval.",
            mime_type=APP_MIME_TYPE,
            meta={"ui": {"csp": {"connectDomains": [], "resourceDomains": []}, "prefersBorder": True}},
            text=page,
        )
        return [ResourceBinding(resource)]

    async def intercept_tool_call(
        self, params: CallToolRequestParams, ctx: Ctx, call_next: CallNext
    ) -> HandlerResult:
        result = await call_next(ctx)
        if params.name not in SHOWN_BY or not shows_apps(ctx) or not isinstance(result, CallToolResult):
            return result
        message_id = message_of(result)
        if message_id is None:
            return result
        caller = self._caller_of(ctx)
        try:
            message = await caller.carrier.run(calls.get_message(message_id))
        except PostroomError:  # the answer of the tool stands without a card
            return result
        return result.model_copy(update={"meta": {**(result.meta or {}), KEY: card_of(message, caller)}})


def tool_meta(name: str) -> Json | None:
    return {"ui": {"resourceUri": URI}} if name in SHOWN_BY else None


def shows_apps(ctx: Ctx) -> bool:
    declared = ctx.session.client_capabilities
    return declared is not None and EXTENSION_ID in (declared.extensions or {})


def message_of(result: CallToolResult) -> str | None:
    texts = [block.text for block in result.content if isinstance(block, TextContent)]
    try:
        answer = msgspec.json.decode(texts[0], type=dict[str, Any]) if texts and not result.is_error else {}
    except msgspec.DecodeError:
        return None
    found = answer.get("message_id")
    return found if isinstance(found, str) else None


def card_of(message: Message, caller: Caller) -> Json:
    """Return what a recipient will see, as it is stored. Long texts are cut, and the card says so."""
    hold, text = message.hold, message.body_text
    origins = [] if hold is None else hold.origins
    recipients = [*filter(None, [message.header_to]), *message.cc[:MOST_SHOWN]]
    return {
        "state": hold.state if hold is not None else message.status,
        "reasons": [] if hold is None else list(hold.reasons),
        "origins": [f"{each.value} ({each.kind}) of {each.message_id}" for each in origins],
        "from": message.from_addr[:NAME_CHARACTERS],
        "to": ", ".join(recipients)[:TEXT_CHARACTERS],
        "bcc": ", ".join(message.bcc[:MOST_SHOWN])[:TEXT_CHARACTERS],
        "replyTo": (message.reply_to or "")[:NAME_CHARACTERS],
        "headers": [f"{name}: {value}" for name, value in message.headers.items()][:MOST_SHOWN],
        "subject": message.subject[:NAME_CHARACTERS],
        "text": text[:TEXT_CHARACTERS],
        "isCut": len(text) > TEXT_CHARACTERS or len(message.cc) + len(message.bcc) > MOST_SHOWN,
        "hasHtml": bool(message.body_html),
        "isRedirected": message.redirect_of is not None,
        "files": [
            {"name": file.filename[:NAME_CHARACTERS], "bytes": file.size_bytes}
            for file in message.attachments[:MOST_SHOWN]
        ],
        "fileCount": len(message.attachments),
        "url": approval_url(message, caller),
    }
