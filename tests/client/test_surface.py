"""Both clients offer the same, know every error of the server, and need nothing of it."""

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct, structs

import postroom.errors
import postroom_client
from postroom.web.routes import ROUTES
from postroom_client import AsyncClient, Client, account_results, charge_results, results
from postroom_client import errors as client_errors
from postroom_client.calls import calls, deciding, drafting, tenancy
from postroom_client.transport.exchange import Call
from tests.samples import samples

SOURCE = Path(postroom_client.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))
LIBRARY = {"postroom_client", "httpx2", "websockets", "msgspec", "platformdirs"}
COMMAND = {"typer", "rich"}
TOOLS = {"mcp", "mcp_types", "pydantic"}


def public(kind: type) -> dict[str, object]:
    return {name: value for name, value in vars(kind).items() if not name.startswith("_")}


def test_both_clients_have_the_same_methods() -> None:
    assert public(Client).keys() == public(AsyncClient).keys()


@samples("name", sorted(public(Client)))
def test_a_method_takes_the_same_arguments_in_both(name: str) -> None:
    blocking, awaited = getattr(Client, name), getattr(AsyncClient, name)
    assert inspect.signature(blocking).parameters.keys() == inspect.signature(awaited).parameters.keys()


def test_every_list_has_an_iterator_over_its_pages() -> None:
    for client in (Client, AsyncClient):
        lists = {name.removeprefix("list_") for name in dir(client) if name.startswith("list_")}
        assert lists
        assert lists <= {name.removeprefix("iter_") for name in dir(client) if name.startswith("iter_")}


def test_every_described_call_is_a_method() -> None:
    described = {
        name
        for module in (calls, deciding, drafting, tenancy)
        for name, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__ == module.__name__ and not name.startswith("_")
    } - {"given"}
    assert described <= public(Client).keys()


def stand_ins(describe: Callable[..., Any]) -> dict[str, Any]:
    parameters = inspect.signature(describe).parameters.values()
    asked = [
        each.name for each in parameters if each.default is each.empty and each.kind is not each.VAR_KEYWORD
    ]
    special = {"since": datetime.now(UTC), "send_at": datetime.now(UTC), "attachments": (), "is_read": True}
    return {name: special.get(name, "x") for name in asked}


def routes_of_methods() -> set[tuple[str, str]]:
    """Method and path of each described call, with ids that are all alike."""
    described = [
        getattr(module, name) for module in (calls, deciding, drafting, tenancy) for name in dir(module)
    ]
    found = {("POST", "/v1/inboxes/x/send"), ("GET", "/v1/inboxes/x/wait")}  # these take several steps
    for describe in described:
        if inspect.isfunction(describe) and "Call[" in str(inspect.signature(describe).return_annotation):
            call = describe(**stand_ins(describe))
            found |= {(call.method, call.path)} if isinstance(call, Call) else set()
    return found


def test_every_route_has_a_method() -> None:
    wanted = {
        (route.method, re.sub(r"{[^}]*}", "x", route.path))
        for route in ROUTES
        if route.path.startswith("/v1/")
    }
    of_pods = {
        ("POST", "/v1/pods/x/api-keys"),
        ("GET", "/v1/pods/x/api-keys"),
    }  # an argument of those of keys
    revoked_as_any_key = {("DELETE", "/v1/pods/x/api-keys/x")}
    assert wanted - routes_of_methods() == of_pods | revoked_as_any_key


OTHER_NAMES = {
    "Approval": "ApprovalRules",
    "ChangedThread": "Thread",
    "CreatedApiKey": "ApiKey",
    "HeldMessage": "Approval",
    "InboxWebhookSecret": "InboxSecret",
    "MessagePage": "Page",
    "Paused": "Pause",
    "Payload": "Event",
    "SendReceipt": "Sent",
    "ShownAttachment": "Attachment",
    "ShownAttempt": "WebhookAttempt",
    "ShownHold": "Hold",
    "ShownPolicy": "Policy",
    "ShownRecipient": "Recipient",
    "ShownRecord": "DnsRecord",
    "ShownResult": "SearchResult",
    "ShownRule": "PolicyRule",
    "ShownUsage": "UsageGroup",
}
SAID_BY_SUCCESS = {"ok"}


def shapes_of(answer: Any, found: dict[str, type[Struct]]) -> dict[str, type[Struct]]:
    """All that answers are made of."""
    if isinstance(answer, type) and issubclass(answer, Struct) and answer.__name__ not in found:
        found[answer.__name__] = answer
        for field in structs.fields(answer):
            shapes_of(field.type, found)
    for part in (*getattr(answer, "__args__", ()), *getattr(answer, "__metadata__", ())):
        shapes_of(part, found)
    return found


def test_every_field_of_an_answer_has_a_place_in_its_result() -> None:
    ours = {**vars(results), **vars(charge_results), **vars(account_results)}
    found: dict[str, type[Struct]] = {}
    for route in ROUTES:
        shapes_of(route.answer, found)
    for name, theirs in found.items():
        kind = ours.get(OTHER_NAMES.get(name, name))
        if kind is None:
            continue  # a page, or what no method gives
        missing = {field.encode_name for field in structs.fields(theirs)} - {
            field.encode_name for field in structs.fields(kind)
        }
        assert missing <= SAID_BY_SUCCESS, name


def test_every_error_of_the_server_has_an_exception() -> None:
    for theirs in postroom.errors.ApiError.__subclasses__():
        ours = client_errors.BY_CODE[theirs.code]
        assert ours.status == theirs.status


def allowed_for(path: Path) -> set[str]:
    room = path.relative_to(SOURCE).parts[0]
    return LIBRARY | (COMMAND if room == "cli" else set()) | (TOOLS if room == "mcp" else set())


@samples("path", MODULES)
def test_a_module_imports_nothing_of_the_server(path: Path) -> None:
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            names.add((node.module or "").split(".")[0])
    assert names <= allowed_for(path) | sys.stdlib_module_names


@samples("path", MODULES)
def test_a_module_fits_in_one_sitting_and_says_what_it_is(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= 400
    assert ast.get_docstring(ast.parse(text))


def test_the_command_starts_without_the_heavy_libraries() -> None:
    script = """
import sys
from postroom_client.cli import app
app(["--help"], standalone_mode=False)
print({"httpx2", "websockets", "msgspec", "rich", "pydantic", "platformdirs", "ssl"} & set(sys.modules))
"""
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.splitlines()[-1] == "set()"


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = postroom_client.Nothing
