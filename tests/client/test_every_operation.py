"""Every operation of the API and every field that it takes can be reached by a command."""

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import postroom_client
from postroom_client.calls import calls, shortcuts
from postroom_client.cli.plain.table import ROWS

CLI = Path(postroom_client.__file__).parent / "cli"
SOURCES = "\n".join(path.read_text() for path in sorted(CLI.rglob("*.py")))

WITHOUT_COMMAND = {
    "create_pod_key": "keys create --pod-id",
    "delete_pod_key": "keys delete",
    "create_upload": "attachments upload takes any number of steps",
    "get_calendar": "calendars list shows all of it",
    "get_thread": "threads get also shows the messages",
    "list_events": "listen, which goes on",
    "set_policy": "policies mode, allow, block and delete change one thing at a time",
}
BY_CONNECT = "postroom connect asks for it"
BY_APPROVALS = "postroom approvals require, free"
WITHOUT_OPTION = {
    ("create_connection", "api_key"): "--api-key is the key of this server",
    ("create_connection", "oauth"): BY_CONNECT,
    ("create_connection", "smtp"): BY_CONNECT,
    ("create_key", "scope"): "--pod-id, --inbox-id",
    ("list_thread_messages", "order"): "a thread is read from its start",
    ("update_account", "approval"): BY_APPROVALS,
    ("update_account", "saved_searches"): "they are links on the pages of a browser",
    ("update_connection", "api_key"): "--api-key is the key of this server",
    ("update_connection", "oauth"): BY_CONNECT,
    ("update_connection", "smtp"): BY_CONNECT,
    ("update_inbox", "approval"): BY_APPROVALS,
    ("update_inbox", "limits"): "postroom budgets set, clear",
    ("update_key", "approval"): BY_APPROVALS,
    ("update_key", "limits"): "postroom budgets set, clear",
    ("update_pod", "approval"): BY_APPROVALS,
    ("update_rule", "actions"): "postroom rules create writes them, rules delete takes them away",
    ("update_thread", "expect_reply_by"): "postroom threads expect",
}


def is_call(name: str) -> bool:
    described = getattr(calls, name, None)
    return inspect.isfunction(described) and "Call[" in str(inspect.signature(described).return_annotation)


def called_by_commands() -> set[str]:
    """Calls in the table, in handlers, and in the shortcuts that these use."""
    named = {row.call for row in ROWS.values()} | set(re.findall(r"\b[a-z_]+\b", SOURCES))
    for name in list(named):
        if inspect.isfunction(shortcut := vars(shortcuts).get(name)):
            named |= set(re.findall(r"calls\.([a-z_]+)", inspect.getsource(shortcut)))
    return {name for name in named if is_call(name)}


def test_every_operation_has_a_command() -> None:
    assert {name for name in vars(calls) if is_call(name)} - called_by_commands() == WITHOUT_COMMAND.keys()


def unreachable() -> Iterator[tuple[str, str]]:
    """Fields of an operation of the table that none of its commands takes."""
    for call in {row.call for row in ROWS.values()}:
        rows = [row for row in ROWS.values() if row.call == call]
        offered = {each.name for row in rows for each in (*row.check_input(), *row.optional())}
        offered |= {each.part_of for row in rows for each in row.optional() if each.part_of}
        offered |= {name for row in rows for name in row.fixed}
        described = getattr(calls, call, None) or getattr(shortcuts, call)
        yield from ((call, name) for name in inspect.signature(described).parameters if name not in offered)


def test_every_option_of_the_table_is_taken_by_its_call() -> None:
    for row in ROWS.values():
        described = getattr(calls, row.call, None) or getattr(shortcuts, row.call)
        given = {each.part_of or each.name for each in (*row.check_input(), *row.optional())}
        assert given | set(row.fixed) <= inspect.signature(described).parameters.keys(), row.name


def test_every_field_is_an_option_of_a_command() -> None:
    assert set(unreachable()) == WITHOUT_OPTION.keys()
