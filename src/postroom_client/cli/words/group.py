"""Groups of commands: their help is never cut off, and a wrong word names the right one."""

import sys
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from postroom_client.cli import output
from postroom_client.cli.words import grammar

WRONG_USAGE: Any = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "UsageError")
_WHOLE = 10_000  # characters of a description in a list


class Group(TyperGroup):
    """The commands of a noun."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        self.write_commands(formatter, "Commands", self.list_commands(ctx))

    def write_commands(self, formatter: Any, title: str, names: Sequence[str]) -> None:
        known = [(name, self.commands[name]) for name in names if name in self.commands]
        rows = [(name, each.get_short_help_str(_WHOLE)) for name, each in known if not each.hidden]
        if rows:
            with formatter.section(title):
                formatter.write_dl(rows)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[0] in self.commands or args[0].startswith("-") or ctx.resilient_parsing:
            return super().resolve_command(ctx, args)
        near = [f"{ctx.command_path} {each}" for each in grammar.meant(args, list(self.commands))]
        raise WRONG_USAGE(_with_advice(f"No such command '{args[0]}'.", near), ctx)


class Program(Group):
    """The whole program: its errors of usage are JSON where its answers are."""

    def main(self, *arguments: Any, **more: Any) -> Any:
        if more.get("standalone_mode") is False:
            return super().main(*arguments, **more)
        given = arguments[0] if arguments else more.get("args")
        given = sys.argv[1:] if given is None else list(given)
        try:
            code = self._run(given, {**more, "standalone_mode": False})
        except WRONG_USAGE as error:
            _end(error, is_json=output.is_for_programs(given))
        except typer.Abort:
            output.note("Aborted!")
            sys.exit(1)
        sys.exit(code or 0)

    def _run(self, given: list[str], more: dict[str, Any]) -> Any:
        """Run the program. Before it does anything, an unknown `--inbox` is tried again as `--inbox-id`."""
        try:
            return super().main(**{**more, "args": list(given)})
        except WRONG_USAGE as error:
            name = getattr(error, "option_name", "")
            if f"{name}-id" not in (getattr(error, "possibilities", None) or ()):
                raise
        return self._run([_with_id(each, name) for each in given], more)


def _with_id(word: str, option: str) -> str:
    """Return the word, with `-id` behind the name if it is this option."""
    name, equals, value = word.partition("=")
    return f"{name}-id{equals}{value}" if name == option else word


def _end(error: Any, *, is_json: bool) -> NoReturn:
    """Print the error, with the closest options if one does not exist, and exit."""
    if possible := getattr(error, "possibilities", None):
        error.message = _with_advice(f"{error.message}.", get_close_matches(error.option_name, possible))
        error.possibilities = None
    is_whole = isinstance(error, typer.BadParameter) and error.param is None and error.param_hint is None
    message = error.message if is_whole else error.format_message()
    if is_json and type(error).__name__ != "NoArgsIsHelpError":
        path = error.ctx.command_path if error.ctx is not None else "postroom"
        usage = {"error": "usage", "message": message, "help": f"{path} --help"}
        output.note(output.encode(usage).decode())
    elif is_whole:
        WRONG_USAGE(message, error.ctx).show()
    else:
        error.show()
    sys.exit(error.exit_code)


def _with_advice(sentence: str, near: Sequence[str]) -> str:
    named = " or ".join(f"'{each}'" for each in near)
    return f"{sentence} Did you mean {named}?" if near else sentence
