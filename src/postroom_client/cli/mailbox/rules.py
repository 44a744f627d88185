"""postroom rules create, try: what is done with email that comes in, written as words."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from postroom_client.cli import output
from postroom_client.cli.command import OfInbox, OfPod, command
from postroom_client.cli.context import CommandContext

if TYPE_CHECKING:
    from postroom_client.results import ImportedRules, MailRule, RuleAction, TriedRule

# Actions with a value, and the field that takes it.
VALUES = {
    "label": "label",
    "assign": "assignee_id",
    "snooze": "days",
    "copyTo": "inbox_id",
    "forward": "to",
    "redirect": "to",
    "reply": "template_id",
    "say": "body",
    "webhook": "webhook_id",
}
Do = Annotated[
    list[str],
    typer.Option(
        "--do",
        help="What to do, in order (repeatable): label=NAME, archive, markRead, flag, assign=USER,"
        " snooze=DAYS, junk, trash, silent, copyTo=INBOX, forward=ADDRESS, redirect=ADDRESS,"
        " reply=TEMPLATE, say=TEXT, webhook=ID, judge.",
    ),
]


def create(
    context: CommandContext,
    name: Annotated[str, typer.Argument(help="A name for the rule.")],
    query: Annotated[str, typer.Argument(help="A search, as for `postroom search`.")],
    do: Do,
    stop: Annotated[bool, typer.Option("--stop", help="Leave out later rules for what it matches.")] = False,
    inbox_id: OfInbox = None,
    pod_id: OfPod = None,
) -> None:
    """Add a rule for email that comes in; try it first with `postroom rules try`."""
    from postroom_client.calls import calls

    wanted = [read_action(each) for each in do]
    context.show(
        calls.create_rule(name, query, wanted, stop=stop, inbox_id=inbox_id, pod_id=pod_id), show_rule
    )


def try_out(
    context: CommandContext,
    query: Annotated[str, typer.Argument(help="A search, as for `postroom search`.")],
    do: Do = [],  # noqa: B006
    inbox_id: OfInbox = None,
) -> None:
    """Show what a rule would have done to the last 1,000 messages; nothing is changed."""
    from postroom_client.calls import calls

    wanted = [read_action(each) for each in do]
    context.show(calls.try_rule(query, actions=wanted, inbox_id=inbox_id), _show_trial)


def import_file(
    context: CommandContext,
    file: Annotated[Path, typer.Argument(help="Gmail's XML, or Thunderbird's msgFilterRules.dat.")],
    inbox_id: OfInbox = None,
    pod_id: OfPod = None,
) -> None:
    """Import rules of another mail client; they are switched off until you enable them."""
    from postroom_client.calls import calls

    if not file.is_file():
        raise typer.BadParameter(f"{file} is not a file")
    content = file.read_text(encoding="utf-8", errors="replace")
    kind: Any = "gmail" if content.lstrip("\ufeff").lstrip().startswith("<") else "thunderbird"
    context.show(calls.import_rules(kind, content, inbox_id=inbox_id, pod_id=pod_id), _show_imported)


def _show_imported(found: "ImportedRules") -> None:
    for each in found.skipped:
        output.note(f"{each.name}: {each.reason}")
    output.print_table(("id", "name", "query"), found.data)


def read_action(written: str) -> "RuleAction":
    from postroom_client.results import RuleAction

    kind, _, value = written.partition("=")
    if (kind in VALUES) != bool(value):
        wanted = "no value" if value else "a value, as in label=NAME"
        raise typer.BadParameter(f"{written}: {kind} takes {wanted}")
    given: dict[str, str | int] = {}
    if kind in VALUES:
        if kind == "snooze" and not value.isdigit():
            raise typer.BadParameter(f"{written}: snooze takes a number of days")
        given[VALUES[kind]] = int(value) if kind == "snooze" else value
    return RuleAction(type="reply" if kind == "say" else kind, **given)  # type: ignore[arg-type]


def spell_action(action: "RuleAction") -> str:
    """Return the action as `--do` takes it: label=invoices."""
    given = (getattr(action, field, None) for field in dict.fromkeys(VALUES.values()))
    values = [str(value) for value in given if value is not None]
    kind = "say" if action.type == "reply" and action.body is not None else action.type
    return f"{kind}={', '.join(values)}" if values else kind


def does(rule: "MailRule") -> str:
    return ", ".join(spell_action(each) for each in rule.actions)


def show(context: CommandContext, rule: "MailRule") -> None:
    show_rule(rule)


def show_rule(rule: "MailRule") -> None:
    state = "on" if rule.enabled else f"off: {rule.disabled_reason or 'by hand'}"
    pairs = [("id", rule.id), ("name", rule.name), ("query", rule.query), ("state", state)]
    pairs += [("does", spell_action(each)) for each in rule.actions]
    output.print_human(output.record([*pairs, ("matched", f"{rule.matches} in 30 days")]))


def _show_trial(found: "TriedRule") -> None:
    output.note(f"{found.matched} of the last {found.examined} messages match.")
    done = ("would", lambda each: ", ".join(f"{step.type} {step.outcome}" for step in each.actions))
    output.print_table(("id", "when created_at", "from from_addr", "subject", done), found.messages)


def add_to(group: typer.Typer) -> None:
    command(group, "create")(create)
    command(group, "try")(try_out)
    command(group, "import")(import_file)
