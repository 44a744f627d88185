"""Rules for email that comes in: in words, tried on the last messages before they are saved."""

from typing import Any

from msgspec import Struct
from starlette.responses import Response

from postroom.errors import BadRequest
from postroom.fields import ScopeFilter
from postroom.limits import RULES_OF_A_LEVEL
from postroom.mailbox.rules import NEEDS, RuleAction
from postroom.operations import rules
from postroom.operations.rules import MailRuleChange, NewMailRule, RulesQuery, RuleTrial
from postroom.web.api import rules as trials
from postroom.web.dashboard.actions import runs
from postroom.web.dashboard.display.rendering import link
from postroom.web.dashboard.page_context import PageContext, go

PATH = "/app/settings/rules"
# What each action is called on the page, with `%s` for its value.
WORDS = {
    "label": "label %s",
    "archive": "mark the thread done",
    "markRead": "mark read",
    "flag": "flag",
    "assign": "assign to %s",
    "snooze": "snooze for %s days",
    "junk": "move to Junk",
    "trash": "move to Trash",
    "silent": "tell no agent",
    "copyTo": "copy to %s",
    "forward": "forward to %s",
    "redirect": "redirect to %s",
    "reply": "reply: %s",
    "webhook": "post to %s",
    "judge": "ask the judge",
}
FIELDS = {kind: names[-1] for kind, names in NEEDS.items()}


class RulePlace(Struct, rename="camel", frozen=True):
    inbox_id: str = ""


class MailRuleForm(RulePlace, rename="camel", frozen=True, kw_only=True):
    """`save` is empty for a try."""

    name: str = ""
    query: str = ""
    action: str = "label"
    value: str = ""
    stop: bool = False
    save: str = ""


class RuleMove(RulePlace, rename="camel", frozen=True, kw_only=True):
    position: int


class RuleSwitch(RulePlace, rename="camel", frozen=True, kw_only=True):
    enabled: bool = False


async def show_mail_rules(context: PageContext, query: RulePlace) -> Response:
    return await show(context, MailRuleForm(inbox_id=query.inbox_id))


async def show(context: PageContext, form: MailRuleForm, tried: Any = None) -> Response:
    place = RulesQuery(inbox_id=form.inbox_id or None, limit=RULES_OF_A_LEVEL)
    page = await context.ask(rules.list_rules, query=place)
    return await context.show(
        "mail_rules.html",
        "settings",
        title="Rules",
        rules=[{**each, "words": in_words(each)} for each in page["data"]],
        form=form,
        tried=tried,
        words=WORDS,
        with_value=FIELDS,
    )


def in_words(rule: dict[str, Any]) -> str:
    """Return a rule as a sentence: If …, label invoices and mark read."""
    done = [WORDS[each["type"]].replace("%s", value_of(each)) for each in rule["actions"]]
    listed = " and ".join(filter(None, (", ".join(done[:-1]), done[-1])))
    return f"If {rule['query']}, {listed}{', and stop' if rule['stop'] else ''}."


def value_of(action: dict[str, Any]) -> str:
    return next((str(value) for name, value in action.items() if name != "type"), "")


async def save_or_try(context: PageContext, body: MailRuleForm) -> Response:
    """Shows what the rule matches among the last 1,000 messages; saves it only when asked to."""
    actions = [read_action(body)]
    if not body.save:
        trial = RuleTrial(body.query, actions, body.inbox_id or None)
        return await show(context, body, await context.ask(trials.try_rule, body=trial))
    new = NewMailRule(body.name or body.query[:100], body.query, actions, body.stop)
    await context.run(rules.create_rule, body=new, query=ScopeFilter(body.inbox_id or None, None))
    return go(link(PATH, inboxId=body.inbox_id), "The rule is saved. It applies to email from now on.")


def read_action(form: MailRuleForm) -> RuleAction:
    if form.action not in WORDS:
        raise BadRequest("Choose what the rule does.", field="action")
    name = FIELDS.get(form.action)
    value: str | int = form.value.strip()
    if name is not None and not value:
        raise BadRequest(f"{form.action} needs a value.", field="value")
    if form.action == "snooze":
        if not str(value).isdecimal():
            raise BadRequest("Give a number of days.", field="value")
        value = int(value)
    given: dict[str, Any] = {} if name is None else {name: value}
    return RuleAction(form.action, **given)  # type: ignore[arg-type]


def list_of(form: RulePlace) -> str:
    return link(PATH, inboxId=form.inbox_id)


move = runs(
    rules.change_rule,
    list_of,
    "",
    RuleMove,
    lambda form: {"body": MailRuleChange(position=max(0, form.position))},
)
switch = runs(
    rules.change_rule,
    list_of,
    lambda form: "The rule is on." if form.enabled else "The rule is off.",
    RuleSwitch,
    lambda form: {"body": MailRuleChange(enabled=form.enabled)},
)
remove = runs(
    rules.delete_rule, list_of, "The rule is deleted. What it did stays.", RulePlace, lambda form: {}
)
