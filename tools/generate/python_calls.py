"""Makes `postroom_client/calls/calls.py`: one function an operation, which describes its request."""

from dataclasses import dataclass
from keyword import iskeyword

from tools.generate import names
from tools.generate.description import VERSIONED, Description, Field, Kind, Operation, is_addresses
from tools.generate.python_results import answered_shapes
from tools.generate.python_source import documented, literal, module, result_shape

IMPORTS = (
    "from collections.abc import Mapping, Sequence",
    "from datetime import date, datetime",
    "from typing import Any, Literal, TypedDict",
    "from msgspec import UNSET, UnsetType",
    "from postroom_client.calls.arguments import ANSWER_MARGIN_SECONDS, UPLOAD_TIMEOUT_SECONDS",
    "from postroom_client.calls.arguments import Addresses, File",
    "from postroom_client.calls.arguments import as_json, changes, commas, day, given, idempotency",
    "from postroom_client.calls.arguments import if_match, listed",
    "from postroom_client.calls.arguments import moment, read_files, repeated, unless, upload_seconds",
    "from postroom_client.calls.arguments import with_files",
    "from postroom_client.transport.exchange import Call, content, decoded, nothing, path, present",
)
WAITING = ("wait", "timeout")


@dataclass(frozen=True)
class Argument:
    """`name: kind = default`, and how it is written into the request."""

    name: str
    kind: str
    default: str
    wire: str
    value: str
    place: str  # path, query, body, clears, files or header


def calls(description: Description) -> str:
    operations = names.operations_of_clients(description)
    results = sorted({names.result_of(each) for each in answered_shapes(description)})
    shapes = f"from postroom_client.results import Page, {', '.join(results)}"
    parts = [_function(description, each) for each in operations]
    parts.append(_options(description, description.operation("send_message")))
    docstring = "Every operation of the interface: method, path, what it carries and what it returns."
    return module(docstring, [*IMPORTS, shapes], parts)


def _function(description: Description, operation: Operation) -> str:
    result = f"Call[{answer(description, operation)}]"
    head = f"def {names.method_of(operation)}({signature(description, operation)}) -> {result}:"
    return f"{head}\n    {documented(operation.summary)}\n{_body(description, operation)}\n"


def answer(description: Description, operation: Operation) -> str:
    if operation.is_binary:
        return "bytes"
    return result_shape(description, operation.result) if operation.result else "None"


def arguments(description: Description, operation: Operation) -> list[Argument]:
    """Those that stand without their names first, in their order."""
    found = [_path_argument(each) for each in operation.path_fields]
    found += [_query_argument(operation, each) for each in operation.query]
    clears = any(_clears(each) for each in operation.body)
    found += [_body_argument(description, operation, each, clears=clears) for each in operation.body]
    if operation.header:
        found.append(
            Argument("idempotency_key", "str | None", "None", operation.header, "idempotency_key", "header")
        )
    if operation.is_versioned:
        found.append(Argument("version", "int | None", "None", VERSIONED, "version", "header"))
    order = positional(operation)
    first = {each.name: each for each in found if each.name in order}
    return [first[name] for name in order] + [each for each in found if each.name not in order]


def positional(operation: Operation) -> tuple[str, ...]:
    needed = [*operation.path_fields, *operation.query, *operation.body]
    names_needed = tuple(names.argument_of(operation, each.name) for each in needed if each.is_required)
    return names.POSITIONAL.get(operation.id, names_needed)


def signature(description: Description, operation: Operation, own: str = "") -> str:
    order, made = positional(operation), arguments(description, operation)
    shown = [own] if own else []
    shown += [_shown(each) for each in made[: len(order)]]
    rest = [_shown(each) for each in made[len(order) :]]
    return ", ".join([*shown, *(["*", *rest] if rest else [])])


def _shown(argument: Argument) -> str:
    return f"{argument.name}: {argument.kind}" + (f" = {argument.default}" if argument.default else "")


def _path_argument(each: Field) -> Argument:
    return Argument(each.name, "str", "", each.name, each.name, "path")


def _query_argument(operation: Operation, each: Field) -> Argument:
    name = names.argument_of(operation, each.name)
    if each.kind.name == "choice" and len(each.kind.choices) == 1:
        word = each.kind.choices[0]
        flag = f"{name}_{word}"
        return Argument(flag, "bool", "False", each.name, f"{literal(word)} if {flag} else None", "query")
    if each.separator:
        return Argument(
            name, "Sequence[str]", "" if each.is_required else "()", each.name, f"commas({name})", "query"
        )
    kind = asked_kind(each.kind, set())
    if each.is_required:
        return Argument(name, kind, "", each.name, _spelled(each.kind, name), "query")
    if each.default in (None, ""):
        return Argument(name, _or_none(kind), "None", each.name, _spelled(each.kind, name), "query")
    default = literal(each.default)
    return Argument(name, kind, default, each.name, f"unless({name}, {default})", "query")


def _clears(each: Field) -> bool:
    return not each.is_required and not each.has_default and each.kind.is_nullable


def _body_argument(description: Description, operation: Operation, each: Field, *, clears: bool) -> Argument:
    name = names.argument_of(operation, each.name)
    kind = asked_kind(each.kind, answered_shapes(description))
    if is_files(each):
        return _files_argument(name, clears=clears)
    value = _spelled(each.kind, name)
    if each.is_required:
        return Argument(name, kind, "", each.name, value, "body")
    if _clears(each):
        return Argument(name, _or_unset(kind), "UNSET", each.name, value, "clears")
    if is_addresses(each.kind) and each.default == "":
        return Argument(name, kind, "()", each.name, f"{value} or None", "body")
    if each.default is None or each.kind.name == "map":
        return Argument(name, _or_none(kind), "None", each.name, value, "body")
    if each.kind.name == "list":
        return Argument(name, kind, "()", each.name, f"{value} or None", "body")
    default = literal(each.default)
    return Argument(name, kind, default, each.name, f"unless({name}, {default})", "body")


def _files_argument(name: str, *, clears: bool) -> Argument:
    if clears:
        kind = "Sequence[File] | UnsetType | None"
        return Argument(name, kind, "UNSET", name, f"as_json({name})", "clears")
    return Argument(name, "Sequence[File]", "()", name, name, "files")


def is_files(each: Field) -> bool:
    return each.kind.name == "list" and each.kind.parts[0].shape == "SentFile"


def asked_kind(kind: Kind, results: set[str]) -> str:
    """The type of what a caller gives: moments may be text, and lists any sequence."""
    match kind.name:
        case "list":
            item = kind.parts[0]
            made = f"Sequence[{'str' if item.name == 'choice' else asked_kind(item, results)}]"
        case "map":
            made = f"Mapping[str, {asked_kind(kind.parts[0], results)}]"
        case "union":
            made = "Addresses" if is_addresses(kind) else _either(kind, results)
        case "choice":
            made = f"Literal[{', '.join(map(literal, kind.choices))}]"
        case "shape":
            known = kind.shape in results
            made = f"{names.result_of(kind.shape)} | Mapping[str, Any]" if known else "Mapping[str, Any]"
        case _:
            made = _ASKED[kind.name]
    return _or_none(made) if kind.is_nullable else made


def _either(kind: Kind, results: set[str]) -> str:
    return " | ".join(sorted({asked_kind(part, results) for part in kind.parts}))


_ASKED = {
    "text": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "moment": "datetime | str",
    "day": "date | str",
    "anything": "Any",
}


def _or_none(kind: str) -> str:
    return kind if kind.endswith("| None") else f"{kind} | None"


def _or_unset(kind: str) -> str:
    return f"{kind.removesuffix(' | None')} | UnsetType | None"


def _spelled(kind: Kind, name: str) -> str:
    spell = "listed" if is_addresses(kind) else {"moment": "moment", "day": "day"}.get(kind.name)
    if spell is not None:
        return f"{spell}({name})"
    return f"repeated({name})" if kind.name == "list" else name


def _body(description: Description, operation: Operation) -> str:
    made = arguments(description, operation)
    parts = [literal(operation.method), _path(operation), _reader(description, operation)]
    parts += [f"query=present({_table(made, 'query')})"] if operation.query else []
    parts += _carried(operation, made)
    parts += _headers(operation)
    parts += _how(operation)
    call = f"    return Call({', '.join(parts)})"
    if not any(each.place == "files" for each in made):
        return call
    return f"    files = read_files(attachments)\n{call}"


def _headers(operation: Operation) -> list[str]:
    made = ["idempotency(idempotency_key)"] if operation.header else []
    made += ["if_match(version)"] if operation.is_versioned else []
    return [f"headers={' | '.join(made)}"] if made else []


def _carried(operation: Operation, made: list[Argument]) -> list[str]:
    if any(each.place == "files" for each in made):
        fields = f"given({_named(made, 'body')})"
        return [f"**with_files({fields}, files)", "timeout_seconds=upload_seconds(files)"]
    plain, clearing = _named(made, "body"), _named(made, "clears")
    if not operation.body:
        return []
    upload = ["timeout_seconds=UPLOAD_TIMEOUT_SECONDS"] if operation.takes_files else []
    if not clearing:
        return [f"json=given({plain})"]
    if not plain:
        return [f"json=changes({clearing})", *upload]
    return [f"json=given({plain}) | changes({clearing})", *upload]


def _named(made: list[Argument], place: str) -> str:
    """A word of Python's, such as from, cannot be the name of an argument."""
    placed = [each for each in made if each.place == place]
    reserved = [f'**{{"{each.wire}": {each.value}}}' for each in placed if iskeyword(each.wire)]
    plain = [f"{each.wire}={each.value}" for each in placed if not iskeyword(each.wire)]
    return ", ".join([*plain, *reserved])


def _table(made: list[Argument], place: str) -> str:
    pairs = [f"{literal(each.wire)}: {each.value}" for each in made if each.place == place]
    return f"{{{', '.join(pairs)}}}"


def _path(operation: Operation) -> str:
    if not operation.path_fields:
        return literal(operation.path)
    segments = operation.path.split("/")[1:]
    shown = [each[1:-1] if each.startswith("{") else literal(each) for each in segments]
    return f"path({', '.join(shown)})"


def _reader(description: Description, operation: Operation) -> str:
    if operation.is_binary:
        return "content"
    return f"decoded({answer(description, operation)})" if operation.result else "nothing"


def _how(operation: Operation) -> list[str]:
    is_repeatable = operation.method != "POST" or operation.id in names.REPEATABLE or operation.header
    how = [] if is_repeatable else ["is_repeatable=False"]
    how += ["follows_redirects=True"] if 302 in operation.statuses else []
    waiting = next((each.name for each in operation.query if each.name in WAITING), None)
    how += [f"timeout_seconds={waiting} + ANSWER_MARGIN_SECONDS"] if waiting else []
    how += [f"timeout_seconds={names.TIMEOUTS[operation.id]}"] if operation.id in names.TIMEOUTS else []
    return how


def _options(description: Description, send: Operation) -> str:
    """Whatever an answer to a mail may carry beside its text and its recipients."""
    set_by_hand = {"inbox_id", "to", "body", "subject", "thread_id", "reply_all", "forward_of"}
    made = [each for each in arguments(description, send) if each.name not in set_by_hand]
    lines = [f"    {each.name}: {each.kind}" for each in made]
    docstring = documented("What `reply`, `reply_all` and `forward` take as well: the other fields of a send")
    return "\n".join(["class SendOptions(TypedDict, total=False):", f"    {docstring}\n", *lines]) + "\n"
