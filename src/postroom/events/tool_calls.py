"""Tool calls: which MCP tools keys called, and with what result; equal calls share one row per minute."""

from collections.abc import Mapping

from msgspec import Struct

from postroom.clock import DAY, MINUTE
from postroom.storage.database import Tx

LIFETIME = 30 * DAY
DONE = "done"  # any other outcome is the code of an error


class ToolCall(Struct, frozen=True):
    account_id: str
    key_id: str
    tool: str
    inbox_id: str  # empty: it named none
    outcome: str


class CalledTools(Struct, frozen=True):
    tool: str
    inbox_id: str
    outcome: str
    count: int
    called_at: int


def record(tx: Tx, calls: Mapping[ToolCall, tuple[int, int]]) -> None:
    """Stores how often each was made, and when last."""
    for call, (count, called_at) in sorted(calls.items(), key=lambda each: each[1]):
        tx.run(
            "insert into tool_calls (key_id, minute, tool, inbox_id, outcome, account_id, count, called_at)"
            " values (:key_id, :minute, :tool, :inbox_id, :outcome, :account_id, :count, :called_at)"
            " on conflict (key_id, minute, tool, inbox_id, outcome) do update set"
            " count = tool_calls.count + excluded.count, called_at = excluded.called_at",
            key_id=call.key_id,
            minute=called_at // MINUTE,
            tool=call.tool,
            inbox_id=call.inbox_id,
            outcome=call.outcome,
            account_id=call.account_id,
            count=count,
            called_at=called_at,
        )


def list_last(tx: Tx, key_id: str, limit: int) -> list[CalledTools]:
    rows = tx.all(
        "select tool, inbox_id, outcome, count, called_at from tool_calls where key_id = :key_id"
        " order by minute desc limit :limit",
        key_id=key_id,
        limit=limit,
    )
    return [
        CalledTools(row["tool"], row["inbox_id"], row["outcome"], int(row["count"]), int(row["called_at"]))
        for row in rows
    ]
