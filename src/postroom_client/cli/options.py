"""Turn parameters of an operation into arguments and options, and their values into arguments of a call."""

import inspect
import json
import re
import sys
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from postroom_client.calls.parameters import Parameter
from postroom_client.cli.command import InboxId, Limit, Offset
from postroom_client.cli.safe_text import one_line
from postroom_client.cli.words.names import NOUNS

READ_FROM = "- reads it from stdin, @FILE from a file."
LONG_TEXTS = ("body", "body_html")
KNOWN: dict[str, Any] = {"limit": Limit, "offset": Offset}
UPLOAD = re.compile(r"upl_[0-9a-f]{32}")
RECEIVED = re.compile(r"(msg_[0-9a-f]{32})/(.+)")
JSON_SHOWN = 60  # characters of what cannot be read
JSON_EXAMPLES = {
    "calendar": '{"summary": "Review", "start": "2026-11-20T15:00:00Z", "end": "2026-11-20T16:00:00Z"}',
    "disclosure": '{"text": "Written by an AI agent.", "header": true}',
    "junk": '{"action": "folder", "threshold": 0.9}',
    "follow_ups": '[{"afterDays": 3, "body": "Any news?"}]',
}
INBOX = "The inbox: id, address or name."


def argument(parameter: Parameter) -> inspect.Parameter:
    """Return the parameter as a required positional argument."""
    noun = NOUNS.get(parameter.name)
    told = parameter.help if noun is None else f"The {noun.word}: {noun.by}."
    told = INBOX if parameter.name == "inbox_id" else told
    more: dict[str, Any] = {"metavar": "MOMENT"} if parameter.kind == "moment" else {}
    made: Any = Annotated[_value(parameter), typer.Argument(help=told, show_default=False, **more)]
    return _made(parameter.name, made, inspect.Parameter.empty)


def option(parameter: Parameter, names: Mapping[str, str], known: Collection[str] = ()) -> inspect.Parameter:
    """Return the parameter as an option; `names` renames some, `known` are all of the operation."""
    if parameter.name in KNOWN:
        return _made(parameter.name, KNOWN[parameter.name], parameter.default)
    if parameter.name == "inbox_id" and parameter.is_required:
        return _made(parameter.name, InboxId, None)
    spelled = flag_of(parameter, names)
    told: dict[str, Any] = {"help": _help(parameter, names, known), "metavar": _metavar(parameter, names)}
    if parameter.kind == "flag":
        return _made(parameter.name, Annotated[bool, typer.Option(spelled, help=told["help"])], False)
    if parameter.kind == "switch":
        both = f"{spelled}/--no-{spelled[2:]}"
        return _made(parameter.name, Annotated[bool | None, typer.Option(both, help=told["help"])], None)
    if parameter.kind in ("integer", "number"):
        told |= {"min": parameter.minimum, "max": parameter.maximum}
    if parameter.kind == "day":
        told |= {"formats": ["%Y-%m-%d"]}
    kind, default = _value(parameter), parameter.default
    if parameter.is_required:
        return _made(parameter.name, Annotated[kind, typer.Option(spelled, **told)], inspect.Parameter.empty)
    made: Any = Annotated[kind if default is not None else kind | None, typer.Option(spelled, **told)]
    return _made(parameter.name, made, default)


def _made(name: str, kind: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def flag_of(parameter: Parameter, names: Mapping[str, str]) -> str:
    """Return the name of the option: singular for a list, negated for a flag that is on by default."""
    name = names.get(parameter.name, "")
    if parameter.name == "when":
        name = parameter.part_of
    if not name:
        name = parameter.name.removesuffix("s") if parameter.kind in ("texts", "pairs") else parameter.name
        name = f"no_{name}" if parameter.kind == "flag" and parameter.default is True else name
    return f"--{name.replace('_', '-')}"


def _value(parameter: Parameter) -> Any:
    simple: dict[str, Any] = {
        "integer": int,
        "number": float,
        "flag": bool,
        "switch": bool,
        "texts": list[str],
        "addresses": list[str],
        "pairs": list[str],
        "files": list[str],
        "day": datetime,
    }
    return Literal[parameter.choices] if parameter.kind == "choice" else simple.get(parameter.kind, str)


def _metavar(parameter: Parameter, names: Mapping[str, str]) -> str | None:
    if parameter.name == "headers":
        return "NAME:VALUE"
    words = {
        "moment": "MOMENT",
        "addresses": "ADDRESS",
        "pairs": "NAME=VALUE",
        "files": "FILE",
        "object": "JSON",
        "objects": "JSON",
        "texts": "<str>",
    }
    return words.get(parameter.kind)


def _help(parameter: Parameter, names: Mapping[str, str], known: Collection[str]) -> str:
    """Return the API's description, with fields renamed to options."""

    def as_flag(found: re.Match[str]) -> str:
        name = re.sub(r"([A-Z])", r"_\1", found[0]).lower()
        return f"--{names.get(name, name).replace('_', '-')}" if name in known else found[0]

    told = re.sub(r"(?<!\{)\b[a-z]+[A-Z]\w*\b", as_flag, _without_null(parameter))
    if parameter.default is True:
        told = told.removeprefix("false ").capitalize()
    if parameter.name in LONG_TEXTS or parameter.kind in ("object", "objects"):
        return f"{told} {READ_FROM}"
    more = " (repeatable)." if parameter.kind in ("texts", "addresses", "pairs", "files") else "."
    if parameter.clears and parameter.kind == "text" and "empty" not in told:
        more = more.replace(".", "; empty clears it.")
    return told.rstrip(".") + more


def _without_null(parameter: Parameter) -> str:
    """Return the description without null, which no option can be: an empty text clears a field."""
    if parameter.clears and parameter.kind == "text":
        return re.sub(r"(?<=\. )empty", "Empty", re.sub(r"\bnull\b", "empty", parameter.help))
    return re.sub(r"[;.,]? null(?::| )[^.;]*", "", parameter.help)


def given(parameters: Iterable[Parameter], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of the call, without those not given: the API's defaults apply."""
    found: dict[str, Any] = {}
    for each in parameters:
        if _is_given(each, values):
            value = _read(each, values[each.name])
            if each.part_of:
                found.setdefault(each.part_of, {})[_camel(each.name)] = value
            else:
                found[each.name] = None if value == "" else value
    return found


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.title() for word in others)


def _is_given(parameter: Parameter, values: Mapping[str, Any]) -> bool:
    value = values.get(parameter.name)
    return value is not None and value != [] and not (parameter.kind == "flag" and value is False)


def _read(parameter: Parameter, value: Any) -> Any:
    if parameter.kind == "flag":
        return parameter.default is not True
    if parameter.kind == "pairs":
        return read_pairs(parameter.name, value, ":" if parameter.name == "headers" else "=")
    if parameter.kind == "files":
        return [read_file(each) for each in value]
    if parameter.kind in ("object", "objects"):
        if value == "" and parameter.clears:
            return value
        return read_object(parameter.name, value, list if parameter.kind == "objects" else dict)
    if parameter.kind == "day":
        return value.date() if isinstance(value, datetime) else value
    return read_text(value) if parameter.name in LONG_TEXTS else value


def read_file(value: str) -> Path | dict[str, Any]:
    """Return the file: a path here, the id of an upload, or MESSAGE_ID/FILENAME."""
    if Path(value).is_file():
        return Path(value)
    if UPLOAD.fullmatch(value):
        return {"uploadId": value}
    if (named := RECEIVED.fullmatch(value)) is not None:
        return {"attachmentOf": {"messageId": named[1], "filename": named[2]}}
    raise typer.BadParameter(f"there is no file {value}")


def read_text(value: str) -> str:
    """Return the text: `-` is stdin, `@FILE` a file, and `@@` an @ that starts the text itself."""
    try:
        if value == "-":
            return sys.stdin.read()
        if value.startswith("@@"):
            return value[1:]
        return Path(value[1:]).read_text() if value.startswith("@") else value
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"{value} cannot be read as text: {error}") from None


def read_object(name: str, value: str, kind: type[Any] = dict) -> Any:
    """Return the object or list of JSON that an option gives."""
    text = read_text(value)
    wanted = f"--{name.replace('_', '-')} takes {'a list' if kind is list else 'an object'} of JSON"
    wanted += f", such as {JSON_EXAMPLES[name]}" if name in JSON_EXAMPLES else ""
    try:
        read = json.loads(text)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        shown = one_line(text[:JSON_SHOWN])
        raise typer.BadParameter(f"not valid JSON at {place}: '{shown}'. {wanted}.") from None
    except RecursionError:
        raise typer.BadParameter(f"the JSON is nested too deeply. {wanted}.") from None
    if not isinstance(read, kind):
        raise typer.BadParameter(f"'{one_line(text[:JSON_SHOWN])}' is something else. {wanted}.")
    return read


def read_pairs(name: str, given: list[str], mark: str) -> dict[str, str]:
    """Return the pairs given as `NAME:VALUE` or `NAME=VALUE`, each name once."""
    pairs = [
        (name.strip(), value.strip())
        for name, found, value in (each.partition(mark) for each in given)
        if found
    ]
    if len(dict(pairs)) < len(given):
        raise typer.BadParameter(f"--{name.removesuffix('s')} takes NAME{mark}VALUE, each name once")
    return dict(pairs)
