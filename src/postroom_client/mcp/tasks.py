"""The Tasks extension of MCP: a send that is held is a task, which ends when a person decides or it expires.

Its id is that of the message, so nothing else is stored: any node knows it as long as the message is kept.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.extension import Extension, MethodBinding
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS, CallToolRequestParams, CallToolResult, TextContent
from mcp_types import RequestParams
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import Field, TypeAdapter

from postroom_client.calls import calls
from postroom_client.errors import NotFound, NothingToDo, PostroomError
from postroom_client.mcp import outgoing
from postroom_client.mcp.api_caller import Caller, CallerOf
from postroom_client.mcp.results import written
from postroom_client.results import Hold, Message

TASKS = "io.modelcontextprotocol/tasks"
POLL_MS = 30_000  # people take longer, and a decision need not be known sooner
REFUSED = -32000  # of JSON-RPC: for errors that the server itself defines
APPROVAL = "approval"
Ctx = ServerRequestContext[Any, Any]
Json = dict[str, Any]


class TaskParams(RequestParams):
    task_id: str


class TaskUpdate(TaskParams):
    input_responses: dict[str, Any] = Field(default_factory=dict)


class HeldSends(Extension):
    identifier = TASKS

    def __init__(self, caller_of: CallerOf) -> None:
        self._caller_of = caller_of

    def methods(self) -> list[MethodBinding]:
        versions = frozenset(MODERN_PROTOCOL_VERSIONS)
        return [
            MethodBinding("tasks/get", TaskParams, self._get, versions),
            MethodBinding("tasks/update", TaskUpdate, self._update, versions),
            MethodBinding("tasks/cancel", TaskParams, self._cancel, versions),
        ]

    async def intercept_tool_call(
        self, params: CallToolRequestParams, ctx: Ctx, call_next: CallNext
    ) -> HandlerResult:
        result = await call_next(ctx)
        held_id = held_message(result) if takes_tasks(ctx) else None
        if held_id is None:
            return result
        caller = self._caller_of(ctx)
        try:
            message = await caller.carrier.run(calls.get_message(held_id))
        except PostroomError:  # it was sent: the result says so
            return result
        if message.hold is None:
            return result
        return {"resultType": "task", **task_of(message, message.hold, caller), "status": "working"}

    async def _get(self, ctx: Ctx, params: TaskParams) -> Json:
        caller = self._caller_of(ctx)
        message, hold = await find(caller, params.task_id)
        task = task_of(message, hold, caller)
        if hold.state == "held":
            asked = approval_request(message, caller) if opens_urls(ctx) else None
            more: Json = (
                {} if asked is None else {"status": "input_required", "inputRequests": {APPROVAL: asked}}
            )
        elif task["status"] == "failed":
            more = {"error": {"code": REFUSED, "message": task["statusMessage"]}}
        else:
            more = {"result": result_of(message)} if task["status"] == "completed" else {}
        return {"resultType": "complete", **task, **more}

    async def _update(self, ctx: Ctx, params: TaskUpdate) -> Json:
        """Ignore what a client answers: a person decides on the dashboard."""
        await find(self._caller_of(ctx), params.task_id)
        return {"resultType": "complete"}

    async def _cancel(self, ctx: Ctx, params: TaskParams) -> Json:
        """Cancel the email, if the key may. What a person has decided stays decided."""
        caller = self._caller_of(ctx)
        _, hold = await find(caller, params.task_id)
        if hold.state == "held":
            try:
                await caller.carrier.run(calls.cancel_message(params.task_id))
            except NothingToDo:
                pass  # it was decided in between
            except PostroomError as error:
                raise MCPError(INVALID_PARAMS, f"This task cannot be cancelled: {error}") from None
        return {"resultType": "complete"}


def takes_tasks(ctx: Ctx) -> bool:
    declared = ctx.session.client_capabilities
    is_known = declared is not None and TASKS in (declared.extensions or {})
    return is_known and ctx.protocol_version in MODERN_PROTOCOL_VERSIONS


def opens_urls(ctx: Ctx) -> bool:
    declared = ctx.session.client_capabilities
    asks = None if declared is None else declared.elicitation
    return asks is not None and asks.url is not None


def held_message(result: HandlerResult) -> str | None:
    """Return the id of the message if this is the result of a send that is held, else None."""
    if not isinstance(result, CallToolResult) or result.is_error:
        return None
    [*texts] = (block.text for block in result.content if isinstance(block, TextContent))
    try:
        told = msgspec.json.decode(texts[0]) if texts else None
    except msgspec.DecodeError:
        return None
    if not isinstance(told, Mapping) or "recipients" in told or told.get("is_held") is not True:
        return None
    return str(told["message_id"])


async def find(caller: Caller, task_id: str) -> tuple[Message, Hold]:
    try:
        message = await caller.carrier.run(calls.get_message(task_id))
    except NotFound:
        raise unknown() from None
    except PostroomError as error:
        raise MCPError(INVALID_PARAMS, f"This task cannot be read: {error}") from None
    if message.hold is None or message.direction != "outbound":
        raise unknown()
    return message, message.hold


def unknown() -> MCPError:
    return MCPError(INVALID_PARAMS, "There is no such task. Its id is the one of a message that was held.")


def task_of(message: Message, hold: Hold, caller: Caller) -> Json:
    """Return the task without the fields of its state."""
    made = message.created_at
    told = outgoing.next_step(message.status, hold)
    if hold.state == "held":
        told = f"{told} {approval_url(message, caller)}".rstrip()
    return {
        "taskId": message.id,
        "status": status_of(hold),
        "statusMessage": told,
        "createdAt": moment(made),
        "lastUpdatedAt": moment(hold.decided_at or made),
        "ttlMs": None,
        "pollIntervalMs": POLL_MS,
    }


def status_of(hold: Hold) -> str:
    if hold.state == "held":
        return "working"
    if hold.state in ("rejected", "expired"):
        return "failed"
    return "cancelled" if hold.state == "cancelled" else "completed"


def moment(value: Any) -> str:
    return written(value) if value is not None else ""


def approval_request(message: Message, caller: Caller) -> Json | None:
    """Return the request that opens the page where a person decides, or None."""
    url = approval_url(message, caller)
    if not url:
        return None
    params = {
        "mode": "url",
        "elicitationId": message.id,
        "url": url,
        "message": "An email is held. Check what it says, and approve or reject it on the dashboard.",
    }
    return {"method": "elicitation/create", "params": params}


def approval_url(message: Message, caller: Caller) -> str:
    return f"{caller.base_url}/app/approvals?message={message.id}" if caller.base_url else ""


def result_of(message: Message) -> Json:
    """Return what the tool would say now."""
    status = outgoing.message_status(message)
    dumped = TypeAdapter(outgoing.MessageStatus).dump_python(status, mode="json")
    text = TextContent(type="text", text=msgspec.json.encode(dumped).decode())
    result = CallToolResult(content=[text], structured_content=dumped)
    return result.model_dump(mode="json", by_alias=True, exclude_none=True)
