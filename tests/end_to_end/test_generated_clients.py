"""Clients that others' generators make of the description, and what linters say of it.

That of TypeScript is in `tests/client/test_typescript.py`, where a compiler runs anyhow.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from postroom.web import routes
from postroom.web.interface import openapi
from tests import generators
from tests.client.live import API_KEY, LiveServer, running_server

pytestmark = pytest.mark.needs("node", "generators of clients")

PYTHON = """
import builtins, os
from made import Client, types
builtins.Unset = types.Unset  # where a body has two forms, the generator forgets this import
from made.api.inboxes import create_inbox, list_inbox_messages, send_message
from made.models import NewInbox, SendBody

headers = {"Authorization": "Bearer " + os.environ["KEY"]}
client = Client(base_url=os.environ["URL"], headers=headers, raise_on_unexpected_status=True)
inbox = create_inbox.sync(client=client, body=NewInbox(mailbox_name="generated"))
body = SendBody(body="By a generated client.", to=inbox.address, subject="Generated")
sent = send_message.sync(inbox.id, client=client, body=body, idempotency_key="one")
page = list_inbox_messages.sync(inbox.id, client=client)
print([message.subject for message in page.data])
"""
MODELS = """
import os, httpx2, msgspec, models
headers = {"Authorization": "Bearer " + os.environ["KEY"]}
answer = httpx2.get(os.environ["URL"] + "/v1/inboxes", headers=headers, timeout=120)
print(type(msgspec.json.decode(answer.content, type=models.InboxPage)).__name__)
"""


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    with running_server(tmp_path_factory.mktemp("live")) as server:
        yield server


@pytest.fixture
def description(tmp_path: Path) -> Path:
    file = tmp_path / "openapi.json"
    file.write_bytes(openapi.render(routes.ROUTES, "https://mail.postroom.dev"))
    return file


def run(folder: Path, *command: str, **environment: str) -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        env=generators.node_environment() | environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def run_python(folder: Path, script: str, live: LiveServer) -> str:
    return run(
        folder,
        sys.executable,
        "-c",
        script,
        URL=live.base_url,
        KEY=API_KEY,
        PYTHONPATH=with_generators(folder),
    )


def with_generators(folder: Path) -> str:
    """Behind our own: where both have a library, ours is meant."""
    return f"{folder}:{':'.join(path for path in sys.path if path)}:{generators.PYTHON_FOLDER}"


def with_ruff() -> str:
    return f"{Path(sys.executable).parent}:{os.environ['PATH']}"


@pytest.mark.share(3)
def test_openapi_python_client_makes_a_client_that_sends(description: Path, live: LiveServer) -> None:
    folder = description.parent
    arguments = ["generate", "--path", description.name, "--output-path", "made", "--meta", "none"]
    path = with_generators(folder)
    run(folder, sys.executable, "-m", "openapi_python_client", *arguments, PYTHONPATH=path)
    assert "Generated" in run_python(folder, PYTHON, live)


@pytest.mark.share(3)
def test_datamodel_code_generator_makes_models_that_read_answers(description: Path, live: LiveServer) -> None:
    folder = description.parent
    options = ["--input-file-type", "openapi", "--output-model-type", "msgspec.Struct"]
    options += ["--formatters", "ruff-format"]  # as good as the usual ones, in a tenth of their time
    arguments = ["--input", description.name, "--output", "models.py", *options]
    environment = {"PYTHONPATH": with_generators(folder), "PATH": with_ruff()}
    run(folder, sys.executable, "-m", "datamodel_code_generator", *arguments, **environment)
    assert run_python(folder, MODELS, live).strip() == "InboxPage"


@pytest.mark.share(3)
def test_redocly_has_nothing_to_say(description: Path) -> None:
    (description.parent / "redocly.yaml").write_text("extends: [recommended]\n")
    said = run(
        description.parent, generators.node_program("redocly"), "lint", "--format=json", description.name
    )
    assert json.loads(said[said.index("{") :])["problems"] == []


@pytest.mark.share(3)
def test_spectral_has_nothing_to_say(description: Path) -> None:
    (description.parent / ".spectral.yaml").write_text('extends: ["spectral:oas"]\n')
    program = generators.node_program("spectral")
    run(description.parent, program, "lint", "--fail-severity=hint", description.name)
