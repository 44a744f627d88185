"""Tasks of rules: actions that are no part of a deposit, queued with it and done once each."""

from collections.abc import Sequence

import msgspec
from msgspec import Struct

from postroom import ids
from postroom.mailbox.rules import Rule, RuleAction
from postroom.queue import leases
from postroom.queue.leases import WorkTable
from postroom.storage.database import Row, Tx, insert_item, item_from_row

BELL = "rule-tasks"
TABLE = WorkTable("rule_tasks", key="id")


class Task(Struct, frozen=True):
    id: str
    account_id: str
    inbox_id: str
    message_id: str
    rule_id: str
    place: int
    action: RuleAction
    tries: int
    due_at: int

    @classmethod
    def from_row(cls, row: Row) -> "Task":
        return item_from_row(cls, row, action=msgspec.json.decode(row["action"], type=RuleAction))


def add(tx: Tx, rule: Rule, place: int, inbox_id: str, message_id: str, now: int) -> None:
    action = rule.actions[place]
    task = Task(
        ids.new(ids.RULE_TASK, now),
        rule.account_id,
        inbox_id,
        message_id,
        rule.id,
        place,
        action,
        0,
        now,
    )
    insert_item(tx, "rule_tasks", task, action=msgspec.json.encode(action).decode())
    tx.ring(BELL)


def is_due(tx: Tx, now: int) -> bool:
    return leases.is_due(tx, TABLE, now)


def claim_due(tx: Tx, running: Sequence[Task], limit: int, now: int) -> list[Task]:
    return [Task.from_row(row) for row in leases.claim_due(tx, TABLE, limit, now)]


def renew(tx: Tx, running: Sequence[Task], now: int) -> None:
    leases.renew(tx, TABLE, [task.id for task in running], now)


def put_off(tx: Tx, task: Task, until: int) -> None:
    tx.run("update rule_tasks set tries = tries + 1, due_at = :until where id = :id", until=until, id=task.id)


def remove(tx: Tx, task: Task) -> bool:
    """Return False if another node removed it first."""
    return leases.remove(tx, TABLE, task.id)
