"""Operations requested by a click on a page that run after a delay."""

from contextlib import closing
from typing import Any

import msgspec
from starlette.requests import Request

from postroom import log
from postroom.accounts import sessions
from postroom.accounts.keys import Caller
from postroom.accounts.permissions import MANAGING, READING, WRITING
from postroom.config import Config
from postroom.errors import ApiError
from postroom.operations import drafts, notifications, pods
from postroom.operations.people import passkeys, push, sign_in
from postroom.outward.courier import WebhookCourier
from postroom.queue import delayed_actions
from postroom.queue.delayed_actions import DelayedAction
from postroom.queue.queue_loop import IDLE_SECONDS
from postroom.resources import Resources
from postroom.web import operations
from postroom.web.api.calendar_events import ChangeQuery, cancel_of_series
from postroom.web.api.messages import remove_blobs
from postroom.web.call import Call, RequestOrigin, Tx
from postroom.web.routes import ROUTE_OF
from postroom.web.routing import ACCOUNT, POD, Route

AT_ONCE = 50


def remove_search(tx: Tx, caller: Caller, name: str, now: int) -> None:
    kept = [each for each in pods.get_account(tx, caller).saved_searches if each.name != name]
    pods.change_account(tx, caller, pods.AccountChange(saved_searches=kept), now)


def remove_target(tx: Tx, caller: Caller, kind: str, target: str, config: Config, now: int) -> None:
    shown = msgspec.to_builtins(notifications.get_notifications(tx, caller))["targets"]
    kept = [each for each in shown if (each["kind"], each["target"]) != (kind, target)]
    body = msgspec.convert({"targets": kept}, notifications.NotificationsBody)
    notifications.put_notifications(tx, caller, body, config, now)


async def cancel_event(call: Call, event_id: str, recurrence_id: str = "") -> None:
    query = ChangeQuery("this" if recurrence_id else "all", recurrence_id or None)
    await cancel_of_series(call, event_id, query, f"page-{event_id}-{recurrence_id}-cancel")


# Operations that only the pages have.
OF_PAGES = (
    Route("POST", "/app/calendar/{event_id}/cancel", cancel_event, POD, WRITING),
    Route("POST", "/app/sessions/{session_id}/end", sign_in.end_session, POD, MANAGING),
    Route("POST", "/app/drafts/{draft_id}/delete", drafts.delete_draft, POD, WRITING, after=remove_blobs),
    Route("POST", "/app/settings/passkeys/{passkey_id}/remove", passkeys.remove_passkey, POD, READING),
    Route("POST", "/app/search/remove", remove_search, ACCOUNT, MANAGING),
    Route("POST", "/app/settings/notifications/remove", remove_target, ACCOUNT, MANAGING),
    Route("POST", "/app/settings/devices/{device_id}/remove", push.remove_device, POD, READING),
)
ROUTES = ROUTE_OF | {route.operation: route for route in OF_PAGES}
BY_NAME = {route.name: route for route in ROUTES.values()}


async def carry_out_delayed(resources: Resources, courier: WebhookCourier) -> None:
    """Runs until cancelled."""
    with closing(resources.db.listen(delayed_actions.BELL)) as subscription:
        while True:
            for action_id in await resources.db.read(delayed_actions.list_due, AT_ONCE, resources.now()):
                await carry_out(resources, courier, action_id)
            await subscription.wait(IDLE_SECONDS)


async def carry_out(resources: Resources, courier: WebhookCourier, action_id: str) -> None:
    """Carry out an action with the person's current permissions.

    A session that has ended does nothing more.
    """
    action = await resources.db.write(delayed_actions.claim, action_id, resources.now())
    if action is None:
        return
    found = await resources.db.read(sessions.find_by_id, action.session_id, resources.now())
    refused: list[str] = []
    if found is not None:
        session, caller = found
        origin = RequestOrigin(action.address, session.user_agent, action.due_at - delayed_actions.DELAY)
        call = Call(resources, caller, Request({"type": "http"}), courier, None, origin=origin)
        refused = await perform_all(call, action)
    if refused:
        await resources.db.write(delayed_actions.mark_refused, action_id, refused)
    else:
        await resources.db.write(delayed_actions.remove, action_id)


async def perform_all(call: Call, action: DelayedAction) -> list[str]:
    """Returns why some of it was refused."""
    route = BY_NAME.get(action.operation)
    if route is None:
        log.get().error("a delayed action is unknown", operation=action.operation)
        return ["The server was updated in the meantime. Try again."]
    refused = []
    for given in msgspec.json.decode(action.arguments):
        try:
            await operations.perform(route, call, to_arguments(route, given))
        except ApiError as error:
            if error.status >= 500:  # our fault: it is retried when its lease has ended
                raise
            refused.append(error.message)
    return refused


def to_arguments(route: Route, given: dict[str, Any]) -> dict[str, Any]:
    kinds = {"body": route.body, "query": route.query}
    return {
        name: value if kinds.get(name) is None else msgspec.convert(value, kinds[name])
        for name, value in given.items()
    }
