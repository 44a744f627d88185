"""The tools of the set `rules`: which rules there are, and what one would do. Neither changes anything."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated

from pydantic import Field

from postroom_client.calls import calls
from postroom_client.limits import LONGEST_PAGE
from postroom_client.mcp.api_caller import ApiCaller, Ctx, Limit, Offset
from postroom_client.results import MailRule, RuleAction, RuleStep, TriedMessage
from postroom_client.untrusted import Delimiters


@dataclass(frozen=True)
class WantedAction:
    """One thing that a rule does; `type` says which of the other fields it needs."""

    type: Annotated[
        str,
        Field(
            description="label, archive, markRead, flag, assign, snooze, junk, trash, copyTo, forward, reply,"
            " webhook or silent."
        ),
    ]
    label: str | None = None
    assignee_id: str | None = None
    days: int | None = None
    inbox_id: str | None = None
    to: str | None = None
    template_id: str | None = None
    body: str | None = None
    webhook_id: str | None = None


@dataclass(frozen=True)
class RuleSummary:
    id: str
    name: str
    query: str
    actions: list[str]
    stop: bool
    enabled: bool
    disabled_reason: str | None
    matches: int


@dataclass(frozen=True)
class RuleList:
    rules: list[RuleSummary]
    total: int


@dataclass(frozen=True)
class MatchedMessage:
    message_id: str
    thread_id: str
    actions: list[str]
    content: str


@dataclass(frozen=True)
class RuleResult:
    matched: int
    examined: int
    messages: list[MatchedMessage]
    notice: str = ""


class RuleTools:
    def __init__(self, api: ApiCaller) -> None:
        self._api = api

    async def list_rules(
        self,
        ctx: Ctx,
        inbox_id: Annotated[
            str, Field(description="Rules of this inbox; empty: of what your key is for.")
        ] = "",
        limit: Limit = LONGEST_PAGE,
        offset: Offset = 0,
    ) -> RuleList:
        """Show which rules sort incoming email here, in their order, with what each matched in 30 days."""
        asked = calls.list_rules(inbox_id=inbox_id or None, limit=limit, offset=offset)
        page = await self._api.call(ctx, asked)
        return RuleList([summary(rule) for rule in page.data], page.total)

    async def try_rule(
        self,
        ctx: Ctx,
        query: Annotated[str, Field(min_length=1, description="A search: from:a@example.com has:file.")],
        actions: list[WantedAction] | None = None,
        inbox_id: Annotated[str, Field(description="Only email of this inbox.")] = "",
    ) -> RuleResult:
        """Test a rule on the last 1,000 received messages before a person saves it. Nothing is changed."""
        wanted = [RuleAction(**asdict(each)) for each in actions or ()]
        found = await self._api.call(ctx, calls.try_rule(query, actions=wanted, inbox_id=inbox_id or None))
        fence = Delimiters()
        shown = [matched(message, fence) for message in found.messages]
        return RuleResult(found.matched, found.examined, shown, fence.notice if shown else "")


def summary(rule: MailRule) -> RuleSummary:
    return RuleSummary(
        id=rule.id,
        name=rule.name,
        query=rule.query,
        actions=[in_words(action) for action in rule.actions],
        stop=rule.stop,
        enabled=rule.enabled,
        disabled_reason=rule.disabled_reason,
        matches=rule.matches,
    )


def in_words(action: RuleAction) -> str:
    """Return its type and what it is given, such as "label invoices"."""
    given = (getattr(action, name) for name in action.__struct_fields__)
    return " ".join(str(each) for each in given if each is not None)


def matched(message: TriedMessage, fence: Delimiters) -> MatchedMessage:
    content = fence.wrap(f"From: {message.from_addr}\nSubject: {message.subject}")
    return MatchedMessage(message.id, message.thread_id, outcomes(message.actions), content)


def outcomes(steps: Sequence[RuleStep]) -> list[str]:
    return [f"{each.type}: {each.reason or each.outcome}" for each in steps]
