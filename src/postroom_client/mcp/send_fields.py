"""Make the fields of a send arguments of tools: a tool takes all that it does not set itself."""

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, Field

from postroom_client.calls.operations import OPERATIONS
from postroom_client.calls.parameters import Parameter
from postroom_client.limits import SUBJECT_CHARACTERS
from postroom_client.mcp.api_caller import (
    Addresses,
    Attachments,
    IdempotencyKey,
    ReplyAll,
    decode_files,
    in_own_words,
)

F = TypeVar("F", bound=Callable[..., Awaitable[Any]])
KNOWN: dict[str, Any] = {
    "attachments": Attachments,
    "idempotency_key": IdempotencyKey,
    "reply_all": ReplyAll,
    "thread_id": Annotated[str, Field(description="The thread that it answers; empty: a new one.")],
    "forward_of": Annotated[str, Field(description="A message to pass on, with its text and files.")],
    "to": Addresses,
    "body": Annotated[str, Field(description="Plain text or HTML.")],
    "subject": Annotated[str, Field(max_length=SUBJECT_CHARACTERS)],
    "from_address": Annotated[str, Field(description="An alias of the inbox to send from.")],
    "send_at": Annotated[str, Field(description="RFC 3339 with offset, at most 30 days ahead.")],
}
EMPTY: tuple[Any, ...] = ("", None, [], {})
# Set by the tool itself; for a reply the thread is enough; and unsubscribe links are for bulk mail.
LEFT_OUT = {"inbox_id", "reply_to_message_id", "unsubscribe"}
# Each has its own argument; the other fields share `options`, so that the list of tools stays short.
OFTEN = {
    *("to", "subject", "body", "thread_id", "reply_all", "forward_of", "cc"),
    *("attachments", "send_at", "idempotency_key", "from_address"),
}
OPTIONS = "options"
RENAMED = {"fields": "template_fields"}
INVITATION = "calendar is an invitation: summary, start, end, location."


def takes(operation: str, *, but: Sequence[str] = ()) -> Callable[[F], F]:
    """Give a tool the fields of an operation that it does not set, the rare ones as `options`."""

    def extend(tool: F) -> F:
        known = inspect.signature(tool, eval_str=True)
        own = [each for each in known.parameters.values() if each.kind is not each.VAR_KEYWORD]
        named = {each.name for each in own} | set(but) | LEFT_OUT
        fields = [each for each in OPERATIONS[operation] if not each.part_of]
        left = [each for each in fields if each.name not in named]
        more = [_argument(each) for each in left if each.name in OFTEN]
        vars(tool)["options"] = rare = _rare(left)
        vars(tool)["__signature__"] = known.replace(parameters=[*own, *more, _options(rare)])
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


def _rare(fields: Sequence[Parameter]) -> list[str]:
    return [
        RENAMED.get(each.name, each.name)
        for each in fields
        if not each.part_of and each.name not in OFTEN | LEFT_OUT
    ]


def _options(names: Sequence[str]) -> inspect.Parameter:
    def require_known(given: dict[str, Any] | None) -> dict[str, Any] | None:
        for name in given or {}:
            if name not in names:
                raise ValueError(f"there is no option {name[:100]}. There are: {', '.join(names)}")
        return given

    description = f"Rarely needed: {', '.join(_rare(OPERATIONS['send']))}. {INVITATION}"
    annotation = Annotated[
        dict[str, Any] | None, Field(description=description), AfterValidator(require_known)
    ]
    return inspect.Parameter(OPTIONS, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


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
        case "objects":
            return list[dict[str, Any]] | None, None
        case "files":
            return Attachments, None
        case "addresses":
            return Addresses, ""
        case _:
            return str, ""


def given(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the non-empty values, with files read."""
    whole = {**(fields.get(OPTIONS) or {}), **fields}
    found = {name: value for name, value in whole.items() if value not in EMPTY and name != OPTIONS}
    if "template_fields" in found:
        found["fields"] = found.pop("template_fields")
    if "attachments" in found:
        found["attachments"] = decode_files(found["attachments"])
    return found
