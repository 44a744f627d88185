"""The fields of a send as arguments of tools: a tool takes all that it does not set itself."""

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Annotated, Any, TypeVar

from pydantic import Field

from postroom_client.calls.operations import OPERATIONS
from postroom_client.calls.parameters import Parameter
from postroom_client.mcp.api_caller import Addresses, Attachments, IdempotencyKey, decode_files, in_own_words

F = TypeVar("F", bound=Callable[..., Awaitable[Any]])
KNOWN: dict[str, Any] = {
    "attachments": Attachments,
    "idempotency_key": IdempotencyKey,
    "reply_all": Annotated[bool, Field(description="With thread_id: to all whom its last mail names.")],
    "forward_of": Annotated[str, Field(description="A message to forward, with its text and files.")],
}
EMPTY: tuple[Any, ...] = ("", None, [], {})
# Set by the tool itself; for a reply the thread is enough; templates are described by the tool itself; and
# unsubscribe links are for bulk mail.
LEFT_OUT = {"inbox_id", "reply_to_message_id", "template", "fields", "unsubscribe"}


def takes(operation: str, *, but: Sequence[str] = ()) -> Callable[[F], F]:
    """Gives a tool the fields of an operation besides its own, except those that it sets."""

    def extend(tool: F) -> F:
        known = inspect.signature(tool, eval_str=True)
        own = [each for each in known.parameters.values() if each.kind is not each.VAR_KEYWORD]
        named = {each.name for each in own} | set(but) | LEFT_OUT
        fields = [each for each in OPERATIONS[operation] if not each.part_of]
        more = [_argument(each) for each in fields if each.name not in named]
        vars(tool)["__signature__"] = known.replace(parameters=[*own, *more])
        return tool

    return extend


def _argument(parameter: Parameter) -> inspect.Parameter:
    kind, default = _kind(parameter)
    known = KNOWN.get(parameter.name)
    limits: dict[str, Any] = {"ge": parameter.minimum, "le": parameter.maximum}
    annotation = known or Annotated[kind, Field(description=in_own_words(parameter.help), **limits)]
    return inspect.Parameter(
        parameter.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
    )


def _kind(parameter: Parameter) -> tuple[Any, Any]:
    match parameter.kind:
        case "flag" | "switch":
            return bool, parameter.default is True
        case "integer":
            return int, parameter.default or 0
        case "pairs":
            return dict[str, str] | None, None
        case "object":
            return dict[str, Any] | None, None
        case "files":
            return Attachments, None
        case "addresses":
            return Addresses, ""
        case _:
            return str, ""


def given(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The non-empty values, with files read."""
    found = {name: value for name, value in fields.items() if value not in EMPTY}
    if "attachments" in found:
        found["attachments"] = decode_files(found["attachments"])
    return found
