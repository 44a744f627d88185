"""Rows of the table of plain commands. Each runs one operation and shows columns, fields or a sentence."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import typer

from postroom_client.calls.operations import OPERATIONS
from postroom_client.calls.parameters import Parameter
from postroom_client.cli import options, output
from postroom_client.cli.command import register
from postroom_client.cli.context import CommandContext
from postroom_client.cli.output import Columns

if TYPE_CHECKING:
    from postroom_client.transport.exchange import Call

Show = Callable[[CommandContext, Any], None]
Then = Callable[[CommandContext, Any, Mapping[str, Any]], None]


@dataclass(frozen=True)
class Plain:
    """`call` is a method of the client. `arguments` are positional (by default the required ones); all other
    parameters of the operation are options, or only those in `options`. `columns` show a list, `fields`
    one item, `done` is the sentence if there is no answer to show.
    """

    name: str
    call: str
    help: str
    columns: Columns = ()
    fields: Columns = ()
    show: Show | None = None
    done: str = ""
    empty: str = ""
    note: str = ""
    confirm: str = ""
    missing: str = ""
    arguments: tuple[str, ...] | None = None
    options: tuple[str, ...] | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)
    flags: Mapping[str, str] = field(default_factory=dict)
    more: tuple[Parameter, ...] = ()
    then: Then | None = None
    of_default_inbox: bool = False  # if neither an inbox nor a calendar is given

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return (*OPERATIONS.get(self.call, ()), *self.more)

    def check_input(self) -> list[Parameter]:
        known = {each.name: each for each in self.parameters}
        if self.arguments is not None:
            return [known[name] for name in self.arguments]
        return [each for each in self.parameters if each.is_required and each.name not in self.fixed]

    def optional(self) -> list[Parameter]:
        check_input = {each.name for each in self.check_input()} | set(self.fixed)
        rest = [each for each in self.parameters if each.name not in check_input]
        if self.options is None:
            return rest
        return [each for each in rest if each.name in self.options or each.is_required]


def add(row: Plain, app: typer.Typer) -> None:
    """Add the command of a row, below the group of its name."""

    def handler(context: CommandContext, /, **values: Any) -> None:
        run(context, row, values)

    handler.__doc__ = row.help
    register(app, row.name.rpartition(" ")[2], handler, signature(row))


def signature(row: Plain) -> list[inspect.Parameter]:
    made = [options.argument(each) for each in row.check_input()]
    known = {each.name for each in row.parameters}
    made += [options.option(each, row.names, known) for each in row.optional()]
    made += [_flag(name, meaning) for name, meaning in row.flags.items()]
    return made + ([_flag("yes", "Do not ask.", "-y")] if row.confirm else [])


def _flag(name: str, meaning: str, *short: str) -> inspect.Parameter:
    kind = Annotated[bool, typer.Option(f"--{name}", *short, help=meaning)]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=kind)


def run(context: CommandContext, row: Plain, values: Mapping[str, Any]) -> None:
    if row.confirm:
        output.confirm(row.confirm.format(**values), yes=values["yes"])
    call = describe(context, row, values)
    if row.done:
        context.ask(call)
        result = None
    else:
        result = _ask(context, row, call)
    if row.then is not None:
        row.then(context, result, values)
    if row.done:
        context.done(_record(row, values), row.done.format(**values))
    if row.note:
        output.note(row.note)


def describe(context: CommandContext, row: Plain, values: Mapping[str, Any]) -> "Call[Any]":
    from postroom_client.calls import calls, shortcuts

    asked = {**options.given(row.parameters, values), **row.fixed}
    if row.call.startswith("update_") and not _has_change(row, asked):
        flags = [options.flag_of(each, row.names) for each in row.optional()]
        raise typer.BadParameter(f"nothing to change: pass {' or '.join(flags)}")
    if any(each.name == "inbox_id" and each.is_required for each in row.optional()):
        asked["inbox_id"] = context.require_inbox_id(asked.get("inbox_id"))
    if row.of_default_inbox and not asked.keys() & {"inbox_id", "calendar_id"}:
        asked["inbox_id"] = context.require_inbox_id(None)
    described: Call[Any] = getattr(shortcuts if hasattr(shortcuts, row.call) else calls, row.call)(**asked)
    return described


def _has_change(row: Plain, asked: Mapping[str, Any]) -> bool:
    needed = {each.name for each in row.parameters if each.is_required}
    return bool(asked.keys() - needed)


def _ask(context: CommandContext, row: Plain, call: "Call[Any]") -> Any:
    from postroom_client.errors import NotFound

    try:
        return context.show(call, lambda result: _show(context, row, result))
    except NotFound:
        if row.missing:
            raise NotFound(row.missing) from None
        raise


def _record(row: Plain, values: Mapping[str, Any]) -> dict[str, object]:
    """Return the JSON to print for a call whose answer has no body."""
    named = [each.name for each in row.check_input()]
    ids = [name for name in named if name.endswith("_id")]
    record = {"id": values[ids[-1]]} if ids else {}
    return record | {name: values[name] for name in named if name not in ids} | {"deleted": True}


def _show(context: CommandContext, row: Plain, result: Any) -> None:
    if row.show is not None:
        row.show(context, result)
    elif row.columns:
        show_list(row.columns, result, row.empty)
    else:
        output.print_fields(row.fields, result)


def show_list(columns: Columns, page: Any, empty: str) -> None:
    if not page.data and empty:
        output.note(empty)
        return
    output.print_table(columns, page.data)
    output.mention_rest(page)
