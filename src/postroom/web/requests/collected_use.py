"""When each key was last used, and which tools are called at /mcp, read from requests and their answers.

Collected in memory and written from time to time, not at each request.
"""

from collections.abc import Callable
from typing import TypeVar

import msgspec
from msgspec import Struct

from postroom import ids
from postroom.accounts import keys
from postroom.accounts.keys import Caller
from postroom.events import tool_calls
from postroom.events.tool_calls import DONE, ToolCall
from postroom.resources import Resources, Tx

T = TypeVar("T")

TOOL_CHARACTERS = 64
FAILED = "failed"


class Arguments(Struct, frozen=True):
    inbox_id: object = ""


class Params(Struct, frozen=True):
    name: str = ""
    arguments: Arguments = Arguments()


class Asked(Struct, frozen=True):
    method: str
    params: Params = Params()


class ResultText(Struct, frozen=True):
    text: str = ""


class Result(Struct, rename="camel", frozen=True):
    is_error: bool = False
    content: list[ResultText] = []


class Answered(Struct, frozen=True):
    result: Result | None = None


class ErrorAnswer(Struct, frozen=True):
    error: str


class KeyUse:
    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._used_at: dict[str, int] = {}

    def record(self, key_id: str, now: int) -> None:
        self._used_at[key_id] = now

    async def save(self) -> None:
        used_at, self._used_at = self._used_at, {}
        if used_at and not await is_written(self._resources, "last use of keys", keys.mark_used, used_at):
            self._used_at = used_at | self._used_at


class ToolUse:
    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._calls: dict[ToolCall, tuple[int, int]] = {}

    def record(self, caller: Caller, body: bytes, answer: bytes, now: int) -> None:
        try:
            asked = msgspec.json.decode(body, type=Asked)
        except msgspec.MsgspecError:
            return
        if asked.method == "tools/call" and asked.params.name:
            self._count(to_call(caller, asked.params, answer), 1, now)

    def _count(self, call: ToolCall, count: int, now: int) -> None:
        self._calls[call] = (self._calls.get(call, (0, 0))[0] + count, now)

    async def save(self) -> None:
        calls, self._calls = self._calls, {}
        if calls and not await is_written(self._resources, "tool calls", tool_calls.record, calls):
            for call, (count, now) in calls.items():
                self._count(call, count, now)


async def is_written(resources: Resources, name: str, write: Callable[[Tx, T], None], collected: T) -> bool:
    """Write the counts. If that fails, they are tried again in the next round."""
    try:
        await resources.db.write(write, collected)
    except Exception as error:
        resources.loops.failed(name, error)
        return False
    resources.loops.works(name)
    return True


def to_call(caller: Caller, params: Params, answer: bytes) -> ToolCall:
    named = params.arguments.inbox_id
    inbox_id = named if isinstance(named, str) and ids.is_id(ids.INBOX, named) else caller.inbox_id
    tool = params.name[:TOOL_CHARACTERS].replace("\0", "")
    return ToolCall(caller.account_id, caller.key_id, tool, inbox_id or "", outcome_of(answer))


def outcome_of(answer: bytes) -> str:
    """Return "done", or the code of the error that the agent got."""
    try:
        result = msgspec.json.decode(answer, type=Answered).result
    except msgspec.MsgspecError:
        return FAILED
    if result is None:
        return FAILED
    return code_of("".join(each.text for each in result.content)) if result.is_error else DONE


def code_of(text: str) -> str:
    """Return the code of an error. The library may put a text before it."""
    try:
        return msgspec.json.decode(text[text.find("{") :], type=ErrorAnswer).error
    except msgspec.MsgspecError:
        return FAILED
