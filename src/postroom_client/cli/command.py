"""Makes a command of a function: adds the shared options and its context, turns errors into exit codes."""

import copy
import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from postroom_client.cli.context import CommandContext
from postroom_client.cli.words.help_text import as_options
from postroom_client.cli.words.names import NOUNS, find
from postroom_client.limits import LONGEST_PAGE

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


def in_order(arguments: list[str]) -> list[str]:
    """Shared options may come before the command's name: they are moved behind it."""
    left, moved = as_options(arguments), list[str]()
    while left and (left[0] in _ALONE or left[0].partition("=")[0] in _WITH_VALUE):
        takes_next = left[0] in _WITH_VALUE
        moved += left[: 1 + takes_next]
        left = left[1 + takes_next :]
    end = left.index("--") if "--" in left else len(left)
    return left[:end] + moved + left[end:]


def narrowed(app: typer.Typer, arguments: Sequence[str]) -> typer.Typer:
    """With only the called command: building all hundred takes longer than most calls."""
    name = arguments[0] if arguments else ""
    groups = [group for group in app.registered_groups if group.name == name]
    commands = [command for command in app.registered_commands if command.name == name]
    if not groups and not commands:
        return app  # asked for help, or for an unknown one
    one = copy.copy(app)
    one.registered_groups, one.registered_commands = groups, commands
    return one


def group(help_text: str) -> typer.Typer:
    return typer.Typer(help=help_text, no_args_is_help=True, rich_markup_mode=None)


def command(
    app: typer.Typer, name: str, *, options: Callable[..., Any] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """The function's first parameter is its context; the others become arguments and options. With
    `**values`, these are the parameters of the function `options`.
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
    """Under its name, with its own parameters and the shared ones."""

    @functools.wraps(handler)
    def run(**values: Any) -> None:
        shared = {shared: values.pop(shared) for shared in _EVERYWHERE}
        _run_handler(handler, shared, values)

    vars(run)["__signature__"] = inspect.Signature([*own, *_shared_parameters()])
    run.__annotations__ = {}
    app.command(name)(run)


def _shared_parameters() -> list[inspect.Parameter]:
    return [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for name, kind in _EVERYWHERE.items()
    ]


def _run_handler(handler: Callable[..., None], shared: dict[str, Any], values: dict[str, Any]) -> None:
    from postroom_client.errors import PostroomError
    from postroom_client.settings import Flags

    as_json = shared.pop("as_json")
    flags = Flags(**shared)
    context = CommandContext(flags, as_json=as_json)
    try:
        is_on_the_server = values.get("account") is not None  # where ids are used, without the interface
        for parameter in () if is_on_the_server else values.keys() & NOUNS.keys():
            if values[parameter] and isinstance(values[parameter], str):
                values[parameter] = find(context.ask, parameter, values[parameter])
        handler(context, **values)
    except PostroomError as error:
        raise context.fail(error) from None
    finally:
        context.close()
