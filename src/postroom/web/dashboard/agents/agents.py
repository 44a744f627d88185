"""Agents: each key and grant with its sends today, held and failed email, and when it was last seen."""

from typing import Literal

from msgspec import Struct
from msgspec.structs import replace
from starlette.responses import Response

from postroom.accounts import keys, pods
from postroom.accounts.keys import OAUTH, Key
from postroom.accounts.rules import limits, pauses
from postroom.accounts.rules.pauses import Pause
from postroom.accounts.scope import Scope
from postroom.fields import ScopeFilter
from postroom.mailbox import follow_ups, holds, inboxes
from postroom.mailbox.follow_ups import ExpectedAnswers
from postroom.operations import holds as operations
from postroom.outward import key_activity
from postroom.outward.key_activity import SendsOfDay
from postroom.web.call import Tx
from postroom.web.dashboard.agents import timeline
from postroom.web.dashboard.page_context import PageContext, go
from postroom.web.dashboard.paging import SHOWN, OffsetQuery

PATH = "/app/agents"


class AgentPauseForm(Struct, frozen=True):
    action: Literal["pause", "resume"]


class Agent(Struct, frozen=True):
    key: Key
    scope: str
    scope_path: str
    today: SendsOfDay
    per_day: int | None  # its own limit
    held: int
    pause: Pause | None  # of the inbox or the pod that it is for

    @property
    def is_grant(self) -> bool:
        return self.key.kind == OAUTH


async def show_agents(context: PageContext, query: OffsetQuery) -> Response:
    found, more = await context.read(read_agents, context, query.offset)
    return await context.show(
        "agents.html", "agents", title="Agents", agents=found, **query.of(query.offset + len(found) + more)
    )


def read_agents(tx: Tx, context: PageContext, offset: int) -> tuple[list[Agent], bool]:
    """Return a page of agents, sorted by last use, latest first."""
    found = keys.list_of_account(tx, context.call.account_id, SHOWN + 1, offset)
    shown = sorted(found[:SHOWN], key=lambda key: key.last_used_at or 0, reverse=True)
    return [to_agent(tx, context, key) for key in shown], len(found) > SHOWN


def to_agent(tx: Tx, context: PageContext, key: Key) -> Agent:
    scope, path = scope_of(tx, context, key)
    return Agent(
        key=key,
        scope=scope,
        scope_path=path,
        today=key_activity.count_today(tx, key, context.call.now()),
        per_day=limits.decode(key.limits).per_day,
        held=holds.count_within(
            tx, context.call.scope, holds.HELD, choice=replace(holds.FOR_A_PERSON, key_id=key.id)
        ),
        pause=pauses.find(tx, pauses.scope_of(key.scope)),
    )


def scope_of(tx: Tx, context: PageContext, key: Key) -> tuple[str, str]:
    if key.inbox_id is not None:
        address = inboxes.addresses_of(tx, [key.inbox_id]).get(key.inbox_id, "deleted inbox")
        return address, f"/app/inboxes/{key.inbox_id}"
    pod = pods.find(tx, Scope(key.account_id), key.pod_id) if key.pod_id else None
    if pod is None:
        return "Whole account", "/app/settings"
    return f"Pod {pod.name or pod.client_id or 'default'}", f"/app/settings/pods/{pod.id}"


async def show_agent(context: PageContext, key_id: str) -> Response:
    agent, waiting, steps = await context.read(read_agent, context, key_id)
    return await context.show(
        "agent.html", "agents", title=agent.key.name or "Agent", agent=agent, waiting=waiting, steps=steps
    )


def read_agent(
    tx: Tx, context: PageContext, key_id: str
) -> tuple[Agent, ExpectedAnswers, list[timeline.Step]]:
    key = keys.get(tx, context.call.account_id, key_id)
    waiting = follow_ups.count_within(tx, key.scope)
    return to_agent(tx, context, key), waiting, timeline.read(tx, context, key)


async def pause(context: PageContext, key_id: str, body: AgentPauseForm) -> Response:
    """Pauses or resumes the inbox or pod of the key; for an account's key the whole account."""
    key = await context.read(keys.get, context.call.account_id, key_id)
    where = ScopeFilter(key.inbox_id, None if key.inbox_id else key.pod_id)
    if body.action == "pause":
        await context.run(operations.put_pause, query=where)
        return go(f"{PATH}/{key_id}", "Paused. No email is sent until you resume.")
    await context.run(operations.delete_pause, query=where)
    return go(f"{PATH}/{key_id}", "Resumed. Emails that are not held for another reason are sent now.")
