"""Make a command of a function: add the shared options and its context, turn errors into exit codes."""

import copy
import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from postroom_client.cli.context import CommandContext
from postroom_client.cli.words.grammar import in_our_words
from postroom_client.cli.words.group import Group
from postroom_client.cli.words.help_text import as_options
from postroom_client.cli.words.names import LISTED, NOUNS, find
from postroom_client.limits import LONGEST_PAGE

if TYPE_CHECKING:
    from postroom_client.settings import Flags

JSON_FLAGS = "--json/--no-json"
Json = Annotated[
    bool | None,
    typer.Option(
        JSON_FLAGS,
        show_default=False,
        help="JSON for programs or tables for people; JSON when piped.",
    ),
]
ProfileOption = Annotated[str | None, typer.Option("--profile", help="Profile (POSTROOM_PROFILE).")]
BaseUrl = Annotated[str | None, typer.Option("--base-url", help="Server (POSTROOM_BASE_URL).")]
ApiKeyOption = Annotated[str | None, typer.Option("--api-key", help="Key (POSTROOM_API_KEY).")]
InboxId = Annotated[
    str | None,
    typer.Option(
        "--inbox-id", help="Inbox: id, address or name. Default: POSTROOM_INBOX_ID or the profile's inbox."
    ),
]
OfInbox = Annotated[str | None, typer.Option("--inbox-id", help="Only of this inbox.")]
OfPod = Annotated[str | None, typer.Option("--pod-id", help="Only of this pod: its id or clientId.")]
Limit = Annotated[int, typer.Option(min=1, max=LONGEST_PAGE, help="How many to show.")]
Offset = Annotated[int, typer.Option(min=0, help="How many to skip.")]

_EVERYWHERE = {"as_json": Json, "profile": ProfileOption, "base_url": BaseUrl, "api_key": ApiKeyOption}


_WITH_VALUE = ("--profile", "--base-url", "--api-key")
_ALONE = tuple(JSON_FLAGS.split("/"))


def in_order(app: typer.Typer, arguments: list[str]) -> list[str]:
    """Return the arguments as the commands take them: in their words, with shared options behind the name."""
    left, moved = as_options(arguments), list[str]()
    while left and (left[0] in _ALONE or left[0].partition("=")[0] in _WITH_VALUE):
        takes_next = left[0] in _WITH_VALUE
        moved += left[: 1 + takes_next]
        left = left[1 + takes_next :]
    left = in_our_words(app, left)
    end = left.index("--") if "--" in left else len(left)
    return left[:end] + moved + left[end:]


def narrowed(app: typer.Typer, arguments: Sequence[str]) -> typer.Typer:
    """Return the program with only the called command: building all hundred takes longer than most calls."""
    name = arguments[0] if arguments else ""
    groups = [group for group in app.registered_groups if group.name == name]
    commands = [command for command in app.registered_commands if command.name == name]
    if not groups and not commands:
        return app  # asked for help, or for an unknown one
    one = copy.copy(app)
    one.registered_groups, one.registered_commands = groups, commands
    return one


def group(help_text: str) -> typer.Typer:
    return typer.Typer(help=help_text, no_args_is_help=True, rich_markup_mode=None, cls=Group)


def command(
    app: typer.Typer, name: str, *, options: Callable[..., Any] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a command.

    The function's first parameter is its context; the others become arguments and options. With `**values`,
    these are the parameters of the function `options`.
    """

    def take(handler: Callable[..., None]) -> Callable[..., None]:
        shared = [] if options is None else _parameters(options)
        own = [each for each in _parameters(handler)[1:] if each.kind is not inspect.Parameter.VAR_KEYWORD]
        register(app, name, handler, [*shared, *own])
        return handler

    return take


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    return list(inspect.signature(function).parameters.values())


def register(
    app: typer.Typer, name: str, handler: Callable[..., None], own: Sequence[inspect.Parameter]
) -> None:
    """Add the handler as a command of this name, with its parameters and the shared ones."""

    @functools.wraps(handler)
    def run(**values: Any) -> None:
        from postroom_client.settings import Flags

        shared = {shared: values.pop(shared) for shared in _EVERYWHERE}
        as_json = shared.pop("as_json")
        _run_handler(handler, Flags(**shared), as_json, values)

    vars(run)["__signature__"] = inspect.Signature([*own, *_shared_parameters()])
    run.__annotations__ = {}
    app.command(name)(run)


def _shared_parameters() -> list[inspect.Parameter]:
    return [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for name, kind in _EVERYWHERE.items()
    ]


def _run_handler(
    handler: Callable[..., None], flags: "Flags", as_json: bool | None, values: dict[str, Any]
) -> None:
    from postroom_client.cli import other_server
    from postroom_client.errors import PostroomError

    context = CommandContext(flags, as_json=as_json)
    try:
        handler(context, **_with_ids(context, values))
    except PostroomError as error:
        profile = other_server.choose(context, error)
        if profile is None:
            raise context.fail(error) from None
        _run_handler(handler, replace(flags, profile=profile), as_json, values)
    finally:
        context.close()


def _with_ids(context: CommandContext, values: dict[str, Any]) -> dict[str, Any]:
    """Return the values with the ids of what is given by name."""
    if values.get("account") is not None:  # on the server's machine ids are used, without the interface
        return values
    named = {name for name in values.keys() & NOUNS.keys() if values[name] and isinstance(values[name], str)}
    found: dict[str, Any] = {name: find(context.ask, name, values[name]) for name in named}
    for noun in LISTED:
        if given := values.get(f"{noun}s"):
            each = given.split(",") if isinstance(given, str) else given
            ids = [find(context.ask, noun, one.strip()) for one in each]
            found[f"{noun}s"] = ",".join(ids) if isinstance(given, str) else ids
    return values | found
