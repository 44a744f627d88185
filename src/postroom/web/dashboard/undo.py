"""Undo for actions of one click: tried at once, and done ten seconds later unless undone."""

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct
from starlette.responses import Response

from postroom import ids
from postroom.errors import ApiError, NotFound
from postroom.queue import delayed_actions
from postroom.queue.delayed_actions import DelayedAction
from postroom.web import operations
from postroom.web.call import Call, require_owned
from postroom.web.dashboard.actions import Action, F, Text, arguments_of, fill, with_form
from postroom.web.dashboard.delayed_operations import AT_ONCE, ROUTES, carry_out
from postroom.web.dashboard.forms import own_path
from postroom.web.dashboard.page_context import PageContext, go
from postroom.web.routing import Route

SECONDS = delayed_actions.DELAY // 1000


class BackForm(Struct, frozen=True):
    back: str = "/app"


class Trial(NamedTuple):
    """What may be done, the answers, and why the rest was refused."""

    asked: list[dict[str, Any]]
    results: list[Any]
    refused: list[str]


async def delay(context: PageContext, operation: Any, to: str, said: str, **arguments: Any) -> Response:
    """Do the operation after ten seconds. If it would be refused, refuse it at once."""
    await try_out(context.call, ROUTES[operation], arguments)
    return await keep(context, operation, [arguments], to, said)


def delayed(
    operation: Any,
    to: Text[F],
    said: Text[F],
    form: type[F] | None = None,
    given: Callable[[F], dict[str, Any]] | None = None,
) -> Action:
    """Return a page that runs an operation ten seconds later, as `actions.runs` does at once."""

    async def ask(context: PageContext, **named: Any) -> Response:
        texts = fill(to, named), fill(said, named, seconds=SECONDS)
        return await delay(context, operation, *texts, **arguments_of(named, given))

    return with_form(ask, form)


async def try_all(context: PageContext, operation: Any, asked: list[dict[str, Any]]) -> Trial:
    """Try all. One refusal does not stop the others."""
    operations.require_permitted(context.call.caller, ROUTES[operation])
    trial = Trial([], [], [])
    for arguments in asked:
        try:
            trial.results.append(await try_out(context.call, ROUTES[operation], arguments))
            trial.asked.append(arguments)
        except ApiError as error:
            trial.refused.append(error.message)
    return trial


async def try_out(call: Call, route: Route, arguments: dict[str, Any]) -> Any:
    """Runs it in a transaction that is rolled back. If it needs several, only looks for the target."""
    operations.require_permitted(call.caller, route)
    if not route.is_verb:
        named = {name: arguments[name] for name in route.path_names}
        return await require_owned(call, named)
    return await operations.try_out(route, call, arguments)


async def keep(
    context: PageContext, operation: Any, asked: list[dict[str, Any]], to: str, said: str
) -> Response:
    """Keep an action for later. Every page of this session shows it, with an undo button."""
    if not asked:
        return go(to, said)
    route, call = ROUTES[operation], context.call
    action = DelayedAction(
        id=ids.new(ids.DELAYED_ACTION, call.now()),
        account_id=call.account_id,
        session_id=context.session.id,
        operation=route.name,
        arguments=msgspec.json.encode(asked).decode(),
        targets=tuple(str(each[name]) for each in asked for name in route.path_names if name in each),
        said=said,
        address=call.address,
        due_at=call.now() + delayed_actions.DELAY,
    )
    await call.resources.db.write(delayed_actions.add, action)
    return go(to)


async def take_back(context: PageContext, action_id: str, body: BackForm) -> Response:
    is_back = await context.call.resources.db.write(delayed_actions.take_back, context.session.id, action_id)
    if not is_back:
        raise NotFound("It is too late to undo this.")
    return go(own_path(body.back), "Undone. Nothing has changed.")


async def do_now(context: PageContext, action_id: str, body: BackForm) -> Response:
    own = await context.read(delayed_actions.list_of_session, context.session.id, AT_ONCE)
    if action_id not in [action.id for action in own]:
        raise NotFound("It is too late to undo this.")
    await carry_out(context.call.resources, context.call.webhook_courier, action_id)
    left = await context.read(delayed_actions.list_of_session, context.session.id, AT_ONCE)
    return go(own_path(body.back), "" if action_id in [action.id for action in left] else "Done.")


async def dismiss(context: PageContext, action_id: str, body: BackForm) -> Response:
    """Removes the notice of a refusal that the person has read."""
    await context.call.resources.db.write(delayed_actions.dismiss, context.session.id, action_id)
    return go(own_path(body.back))


async def do_all_now(context: PageContext) -> None:
    """Do all now, before the session ends or changes its pod: nothing requested is lost."""
    own = await context.read(delayed_actions.list_of_session, context.session.id, AT_ONCE)
    for action in own:
        await carry_out(context.call.resources, context.call.webhook_courier, action.id)
