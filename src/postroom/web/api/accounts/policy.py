"""Policies over REST: who may write to an inbox, and whom it may write to."""

from msgspec import UNSET

from postroom.accounts.reach import Reach
from postroom.accounts.rules import policy
from postroom.web.boundaries import required
from postroom.web.call import Call, Tx
from postroom.web.interface.bodies.body import Boundary, read_asked
from postroom.web.interface.bodies.tenant_body import ModeChange, NewRule, PolicyAuditQuery, PolicyChange
from postroom.web.interface.shapes.tenant_shapes import (
    DirectionPolicy,
    PolicyStop,
    PolicyStopPage,
    ShownPolicy,
    ShownRule,
)


async def get_policy(call: Call, query: Boundary) -> ShownPolicy:
    """Get the policy of an inbox, of a pod, or of all that the key reaches"""
    return await call.resources.db.read(lambda tx: show(tx, scope(tx, call, query)))


async def put_policy(call: Call, query: Boundary, body: PolicyChange) -> ShownPolicy:
    """Replace the directions that are given"""

    def work(tx: Tx) -> ShownPolicy:
        within = scope(tx, call, query)
        before = show(tx, within)
        for direction, given in ((policy.INBOUND, body.inbound), (policy.OUTBOUND, body.outbound)):
            if given is not UNSET:
                rules = [(rule.type, rule.value) for rule in given.rules]
                policy.replace(tx, within, direction, given.mode, rules, call.now())
        return record_change(tx, call, within, before)

    return await call.resources.db.write(work)


async def put_policy_mode(call: Call, query: Boundary, body: ModeChange) -> ShownPolicy:
    """Set the mode of one direction"""

    def work(tx: Tx) -> ShownPolicy:
        within = scope(tx, call, query)
        before = show(tx, within)
        policy.set_mode(tx, within, body.direction, body.mode)
        return record_change(tx, call, within, before)

    return await call.resources.db.write(work)


async def add_policy_rule(call: Call, query: Boundary, body: NewRule) -> ShownRule:
    """Add a rule; one that is there already is answered as it is"""

    def work(tx: Tx) -> ShownRule:
        within = scope(tx, call, query)
        shown = ShownRule.of(policy.add_rule(tx, within, body.direction, body.type, body.value, call.now()))
        call.record(tx, "policy.rule_added", policy.scope_of(within), within=within, after=shown)
        return shown

    return await call.resources.db.write(work)


async def delete_policy_rule(call: Call, rule_id: str, query: Boundary) -> None:
    """Remove a rule"""

    def work(tx: Tx) -> None:
        within = scope(tx, call, query)
        shown = ShownRule.of(policy.remove_rule(tx, within, rule_id))
        call.record(tx, "policy.rule_removed", policy.scope_of(within), within=within, before=shown)

    await call.resources.db.write(work)


async def list_policy_audit(call: Call, query: PolicyAuditQuery) -> PolicyStopPage:
    """List what policies stopped and what was let in after all, newest first"""

    def work(tx: Tx) -> tuple[list[policy.Stop], int]:
        return policy.list_stops(
            tx,
            required(tx, call.reach, query.inbox_id, query.pod_id),
            query.action,
            query.direction,
            read_asked(query.since, "since"),
            read_asked(query.until, "until"),
            query.limit,
            query.offset,
        )

    found, total = await call.resources.db.read(work)
    return PolicyStopPage([PolicyStop.of(stop) for stop in found], total)


def scope(tx: Tx, call: Call, query: Boundary) -> Reach:
    return required(tx, call.reach, query.inbox_id, query.pod_id)


def show(tx: Tx, within: Reach) -> ShownPolicy:
    return ShownPolicy(
        DirectionPolicy.of(policy.get(tx, within, policy.INBOUND)),
        DirectionPolicy.of(policy.get(tx, within, policy.OUTBOUND)),
    )


def record_change(tx: Tx, call: Call, within: Reach, before: ShownPolicy) -> ShownPolicy:
    after = show(tx, within)
    call.record(tx, "policy.changed", policy.scope_of(within), within=within, before=before, after=after)
    return after
