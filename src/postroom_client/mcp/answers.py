"""Describe tools and their answers: short schemas, answers as text too, errors in the tool's words."""

import inspect
from collections.abc import Callable
from typing import Any

from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools.base import Tool
from mcp.server.mcpserver.utilities.func_metadata import FuncMetadata
from mcp.types import CallToolResult, TextContent, ToolAnnotations
from pydantic import TypeAdapter, ValidationError

UNKNOWN = "extra_forbidden"
SHAPE = ("type", "items", "enum", "anyOf", "additionalProperties", "$ref")
BOUNDS = ("minLength", "maxLength", "minimum")
ADDRESSES = [{"type": "string"}, {"items": {"type": "string"}, "type": "array"}]
Json = dict[str, Any]


# What the library finds, in our words.
ARGUMENT_KINDS = {
    "string": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "list": "a list",
    "dict": "an object",
    "model": "an object",
    "datetime": "a time with its zone, such as 2026-11-14T10:05:00Z",
}
ARGUMENT_BOUNDS = {
    "greater_than_equal": ("be at least {}", "ge"),
    "less_than_equal": ("be at most {}", "le"),
    "greater_than": ("be more than {}", "gt"),
    "less_than": ("be less than {}", "lt"),
    "string_too_short": ("have at least {} characters", "min_length"),
    "string_too_long": ("have at most {} characters", "max_length"),
    "too_short": ("have at least {} entries", "min_length"),
    "too_long": ("have at most {} entries", "max_length"),
}


class Answering(FuncMetadata):
    """The library's metadata of a tool, with the text as one compact block, which may be the whole answer."""

    result: Any = None  # the type of what the tool returns
    is_text: bool = False

    def convert_result(self, result: Any) -> CallToolResult:
        adapter: TypeAdapter[Any] = TypeAdapter(self.result)
        text = adapter.dump_json(result, by_alias=True).decode()
        dumped = None if self.is_text else adapter.dump_python(result, mode="json", by_alias=True)
        return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=dumped)


class PlainTool(Tool):
    """A tool that reports errors in its arguments in Postroom's words."""

    async def run(self, arguments: Json, context: Any, convert_result: bool = False) -> Any:
        try:
            self.fn_metadata.validate_arguments(arguments)
        except ValidationError as error:
            told = [_explain(fault, self.fn_metadata.arg_model) for fault in error.errors()]
            raise ToolError(" ".join(told)) from None
        return await super().run(arguments, context, convert_result)


def _explain(fault: Any, model: Any) -> str:
    place = ".".join(str(part) for part in fault["loc"])
    if fault["type"] == UNKNOWN:
        return f"There is no argument {place}. There are: {', '.join(model.model_fields)}."
    if fault["type"] == "missing":
        return f"The argument {place} is missing."
    context = fault.get("ctx", {})
    if fault["type"] == "value_error":
        return f"{place}: {context['error']}."
    kind, _, _ = fault["type"].rpartition("_")
    if fault["type"] in ARGUMENT_BOUNDS:
        words, bound = ARGUMENT_BOUNDS[fault["type"]]
        return f"{place} must {words.format(context[bound])}."
    if fault["type"] == "literal_error":
        return f"{place} must be {context['expected'].replace(chr(39), '')}."
    return f"{place} must be {ARGUMENT_KINDS.get(kind, 'as the schema of the tool says')}."


def describe(function: Callable[..., Any], annotations: ToolAnnotations) -> Tool:
    """Return the tool that a function's docstring and types describe. It refuses unknown arguments."""
    title = function.__name__.replace("_", " ").capitalize()
    tool = Tool.from_function(function, title=title, annotations=annotations, structured_output=True)
    model = tool.fn_metadata.arg_model
    model.model_config["extra"] = "forbid"
    model.model_rebuild(force=True)
    return tool


def tidy(tool: Tool, function: Callable[..., Any], told: dict[str, str], *, is_text: bool) -> Tool:
    """Return the tool with this function and a shorter description. `told` has descriptions already used."""
    known = tool.fn_metadata
    parameters = _said_once(_input(tool.parameters), told)
    described = None if is_text else {"type": "object"}  # the answer shows its fields
    answering = Answering(
        arg_model=known.arg_model,
        output_schema=described,
        output_model=None,
        wrap_output=False,
        result=known.output_model,
        is_text=is_text,
    )
    kept = {name: getattr(tool, name) for name in Tool.model_fields}
    kept |= {
        "fn": function,
        "description": inspect.cleandoc(tool.description),
        "parameters": parameters,
        "fn_metadata": answering,
    }
    return PlainTool.model_construct(**kept)


def _said_once(schema: Json, told: dict[str, str]) -> Json:
    """Return the schema without the descriptions that an earlier tool has given to the same argument."""
    fields = schema.get("properties", {})
    is_repeated = told.get("attachments") == fields.get("attachments", {}).get("description", "")
    short = {name: _without_repetition(name, field, told) for name, field in fields.items()}
    if is_repeated:
        short["attachments"] = {"type": "array", "items": {"type": "object"}}
        schema = {name: value for name, value in schema.items() if name != "$defs"}
    return {**schema, "properties": short}


def _without_repetition(name: str, field: Json, told: dict[str, str]) -> Json:
    meaning = field.get("description", "")
    if meaning and told.get(name) == meaning:
        return {key: value for key, value in field.items() if key in SHAPE}
    told.setdefault(name, meaning)
    return field if meaning else {key: value for key, value in field.items() if key != "description"}


def _input(schema: Any) -> Any:
    """Return the schema without titles, empty defaults and bounds: errors name these."""
    if isinstance(schema, list):
        return [_input(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    kept: Json = {}
    for name, value in schema.items():
        is_title = name == "title" and isinstance(value, str)
        is_empty_default = name == "default" and value in ("", None, [], {}, False)
        is_open = name == "additionalProperties" and isinstance(value, bool)
        is_bound = name in BOUNDS and isinstance(value, int)
        if not is_title and not is_empty_default and not is_open and not is_bound:
            kept[name] = _input(value)
    return _without_null(kept)


def _without_null(schema: Json) -> Json:
    """Return the schema of an optional value without null."""
    choices = schema.get("anyOf")
    if not isinstance(choices, list):
        return schema
    left = [each for each in choices if each != {"type": "null"}]
    if left == ADDRESSES:
        left = [{"type": ["string", "array"], "items": {"type": "string"}}]
    if len(left) == 1:
        rest = {name: value for name, value in schema.items() if name != "anyOf"}
        return {**left[0], **rest}
    return {**schema, "anyOf": left}
