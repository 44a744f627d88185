"""Which tools are called at /mcp, read from the requests and their answers."""

import msgspec
from msgspec import Struct

from postroom import ids
from postroom.accounts.keys import Caller
from postroom.events import tool_calls
from postroom.events.tool_calls import DONE, ToolCall
from postroom.resources import Resources

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


class ToldText(Struct, frozen=True):
    text: str = ""


class Result(Struct, rename="camel", frozen=True):
    is_error: bool = False
    content: list[ToldText] = []


class Answered(Struct, frozen=True):
    result: Result | None = None


class ToldError(Struct, frozen=True):
    error: str


class ToolUse:
    """Collected here and written once in a while: never a write a call."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._calls: dict[ToolCall, tuple[int, int]] = {}

    def note(self, caller: Caller, body: bytes, answer: bytes, now: int) -> None:
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
        if not calls:
            return
        try:
            await self._resources.db.write(tool_calls.note, calls)
        except Exception as error:  # the next round tries again
            for call, (count, now) in calls.items():
                self._count(call, count, now)
            self._resources.loops.failed("tool calls", error)
        else:
            self._resources.loops.works("tool calls")


def to_call(caller: Caller, params: Params, answer: bytes) -> ToolCall:
    named = params.arguments.inbox_id
    inbox_id = named if isinstance(named, str) and ids.is_id(ids.INBOX, named) else caller.inbox_id
    tool = params.name[:TOOL_CHARACTERS].replace("\0", "")
    return ToolCall(caller.account_id, caller.key_id, tool, inbox_id or "", outcome_of(answer))


def outcome_of(answer: bytes) -> str:
    """Done, or the code of the error that the agent was told."""
    try:
        result = msgspec.json.decode(answer, type=Answered).result
    except msgspec.MsgspecError:
        return FAILED
    if result is None:
        return FAILED
    return code_of("".join(each.text for each in result.content)) if result.is_error else DONE


def code_of(told: str) -> str:
    """Before the error itself may stand what the library says of it."""
    try:
        return msgspec.json.decode(told[told.find("{") :], type=ToldError).error
    except msgspec.MsgspecError:
        return FAILED
