"""Pages that only run an operation and open another page: a row each."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from msgspec import Struct
from starlette.responses import Response

from postroom.web.dashboard.page_context import PageContext, go
from postroom.web.routes import ROUTE_OF

F = TypeVar("F", bound=Struct)

Text = str | Callable[[F], str]  # with names in braces, or made from the form
Action = Callable[..., Awaitable[Response]]


def runs(
    operation: Callable[..., Any],
    to: Text[F],
    said: Text[F],
    form: type[F] | None = None,
    given: Callable[[F], dict[str, Any]] | None = None,
) -> Action:
    """Return a page that runs an operation on what its path names, opens `to` and says `said`.

    Its form is the operation's body, or a form of its own, of which `given` makes arguments. In a text,
    `{made}` is the result, `{body}` the form, and the names of the path stand for themselves.
    """

    async def act(context: PageContext, **named: Any) -> Response:
        made = await context.run(operation, **arguments_of(named, given))
        return go(fill(to, named, made=made), fill(said, named, made=made))

    return with_form(act, form or ROUTE_OF[operation].body)


def decides(
    verb: Callable[..., Any],
    to: Text[F],
    said: Text[F],
    form: type[F] | None = None,
    given: Callable[[F], Any] | None = None,
) -> Action:
    """Return the same for a verb without a route, called with what the path names and what `given` makes."""

    async def act(context: PageContext, **named: Any) -> Response:
        path = [value for name, value in named.items() if name != "body"]
        made = await context.decide(verb, *path, *([] if given is None else [given(named["body"])]))
        return go(fill(to, named, made=made), fill(said, named, made=made))

    return with_form(act, form)


def with_form(act: Action, form: type[Struct] | None) -> Action:
    """Return the action with its form. The route reads the form that the annotation of `body` names."""
    act.__annotations__ |= {} if form is None else {"body": form}
    return act


def arguments_of(named: dict[str, Any], given: Callable[[Any], dict[str, Any]] | None) -> dict[str, Any]:
    """Return the arguments of the operation: what the path names, and the form or what is made of it."""
    if given is None:
        return named
    return {name: value for name, value in named.items() if name != "body"} | given(named["body"])


def fill(text: Text[Any], named: dict[str, Any], **more: Any) -> str:
    return text.format(**named, **more) if isinstance(text, str) else text(named["body"])
