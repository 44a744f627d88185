"""The TypeScript client, by a real Node against a real server. Node strips the types itself."""

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from postroom.web.interface import openapi
from postroom.web.routes import ROUTES
from postroom_client.results import Inbox
from postroom_client.webhook_signature import sign
from tests import generators
from tests.client.live import API_KEY, LiveServer, Ports, running_server
from tests.programs import path_of
from tests.raw_mails import raw_mail

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "clients" / "typescript"
NODE = generators.NEWEST_NODE
LONGEST_SECONDS = 120
HEAD = f"""
import {{ attachment, Client, NotFound, Unauthorized, verifySignature }} from "{PACKAGE}/src/index.ts";
const client = new Client({{ apiKey: process.env.KEY, baseUrl: process.env.URL }});
const say = (value) => console.log(JSON.stringify(value));
"""


def environment(live: LiveServer, key: str, **more: str) -> dict[str, str]:
    return {**os.environ, **generators.kept_by_node(), "KEY": key, "URL": live.base_url, **more}


def script_in(folder: Path, text: str) -> str:
    place = folder / "script.mts"
    place.write_text(HEAD + text)
    return str(place)


RUNNER = f"""
import readline from "node:readline";
for await (const place of readline.createInterface({{ input: process.stdin }})) {{
  const longest = setTimeout(() => process.exit(1), {LONGEST_SECONDS * 1000});
  const ended = await import(place).then(() => "well", (error) => error.stack);
  clearTimeout(longest);
  console.log(JSON.stringify({{ ended }}));
}}
"""


@pytest.fixture(scope="module")
def node(live: LiveServer) -> "Iterator[subprocess.Popen[str]]":
    """Runs scripts one after the other: to load the client takes longer than most. It ends by itself."""
    with subprocess.Popen(
        [str(NODE), "--input-type=module", "-e", RUNNER],
        env=environment(live, API_KEY),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
            assert process.stdin is not None
            process.stdin.close()
            assert process.wait(LONGEST_SECONDS) == 0
        finally:
            process.kill()


def run(node: "subprocess.Popen[str]", folder: Path, text: str) -> list[Any]:
    """What the script has said, one value a line."""
    assert node.stdin is not None
    print(script_in(folder, text), file=node.stdin, flush=True)
    said = [heard(node)]
    while not (isinstance(said[-1], dict) and "ended" in said[-1]):
        said.append(heard(node))
    assert said.pop() == {"ended": "well"}
    return said


@contextmanager
def running(
    live: LiveServer, folder: Path, text: str, key: str = API_KEY, **more: str
) -> "Iterator[subprocess.Popen[str]]":
    with running_script(live, Path(script_in(folder, text)), key, **more) as process:
        yield process


@contextmanager
def running_script(
    live: LiveServer, place: Path, key: str = API_KEY, **more: str
) -> "Iterator[subprocess.Popen[str]]":
    with subprocess.Popen(
        [str(NODE), str(place)],
        env=environment(live, key, **more),
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def test_it_sends_waits_answers_and_reads(
    node: "subprocess.Popen[str]", tmp_path: Path, inbox: Inbox
) -> None:
    script = f"""
const other = await client.createInbox({{ mailboxName: "typed-{time.time_ns()}" }});
const file = attachment("a.txt", new TextEncoder().encode("seven"), "text/plain");
const sent = await client.send(other.id, {{
  to: "{inbox.address}", subject: "Typed", body: "Hello.", attachments: [file],
}});
const query = {{ inbox_ids: ["{inbox.id}"], event_types: ["message.received"], wait: 60 }};
const event = (await client.listEvents(query)).data[0];
const came = await client.getMessage(event.message.id);
say((await client.waitForMessage("{inbox.id}", {{ timeout: 0 }})) === null);
say([came.subject, came.attachments[0].filename, sent.status]);
say((await client.getAttachmentText(came.id, "a.txt")).text.trim());
say(new TextDecoder().decode(await client.getAttachment(came.id, "a.txt")));
const answer = await client.reply(came.threadId, "Yes.", {{ includeQuote: false }});
say((await client.waitForDecision(answer.id, 60)).headerTo === other.address);
say((await client.getMessage(answer.id, {{ wait: 14.984 }})).id === answer.id);
say((await client.getThread(came.threadId)).isRead);
say(await client.deleteInbox(other.id) ?? "gone");
"""
    said = run(node, tmp_path, script)
    assert said == [True, ["Typed", "a.txt", "pending"], "seven", "seven", True, True, True, "gone"]


def test_a_list_of_many_pages_is_one_iterator(
    live: LiveServer, node: "subprocess.Popen[str]", tmp_path: Path
) -> None:
    with live.client() as client:
        pod = client.create_pod(name="pages")
        made = [client.create_inbox(f"page-{time.time_ns()}", pod_id=pod.id).id for _ in range(3)]
    script = f"""
const found = [];
for await (const inbox of client.iterInboxes({{ podId: "{pod.id}", limit: 1 }})) found.push(inbox.id);
say(found);
"""
    assert run(node, tmp_path, script) == [made[::-1]]


def test_the_same_key_sends_once_and_each_call_makes_its_own(
    node: "subprocess.Popen[str]", tmp_path: Path, inbox: Inbox
) -> None:
    script = f"""
const mail = {{ to: "someone@example.com", subject: "Once", body: "Only once." }};
const key = {{ idempotencyKey: "once-{time.time_ns()}" }};
const first = await client.send("{inbox.id}", mail, key);
const again = await client.send("{inbox.id}", mail, key);
const other = await client.send("{inbox.id}", mail);
say([first.id === again.id, first.id === other.id]);
"""
    assert run(node, tmp_path, script) == [[True, False]]


def test_an_error_is_an_instance_of_its_class(node: "subprocess.Popen[str]", tmp_path: Path) -> None:
    script = """
const tell = (error) => [error instanceof NotFound, error instanceof Unauthorized, error.code, error.status];
say(tell(await client.getInbox("inb_0").catch((error) => error)));
const wrong = new Client({ apiKey: "pr_wrong", baseUrl: process.env.URL });
say(tell(await wrong.me().catch((error) => error)));
const waits = [];
const patience = { attempts: 2, firstPauseSeconds: 0.001 };
const onWait = (reason) => waits.push(reason.startsWith("No answer from"));
const away = new Client({ apiKey: "pr_1", baseUrl: "http://127.0.0.1:1", patience, onWait });
say(tell(await away.me().catch((error) => error)));
say(waits);
const field = await client.createInbox({ mailboxName: "x" }).catch((error) => error.extras.field);
say(field);
"""
    assert run(node, tmp_path, script) == [
        [True, False, "not_found", 404],
        [False, True, "unauthorized", 401],
        [False, False, "connection_failed", 0],
        [True],
        "mailboxName",
    ]


def test_the_signature_of_a_webhook_is_checked(node: "subprocess.Popen[str]", tmp_path: Path) -> None:
    body, timestamp = '{"event": "é"}', str(int(time.time()))
    signature = sign(body.encode(), timestamp, "secret")
    given = json.dumps({"body": body, "timestamp": timestamp, "signature": signature, "secret": "secret"})
    script = f"""
const good = {given};
const changed = [
  {{}}, {{ body: good.body + " " }}, {{ secret: "other" }}, {{ signature: good.signature.toUpperCase() }},
  {{ signature: "é" }}, {{ timestamp: "1e9" }}, {{ now: Number(good.timestamp) + 301 }},
  {{ body: new TextEncoder().encode(good.body) }},
];
for (const change of changed) say(await verifySignature({{ ...good, ...change }}));
"""
    assert run(node, tmp_path, script) == [True, False, False, False, False, False, False, True]


STREAM = """
const events = client.stream({ eventTypes: ["message.received"], lastEventId: process.env.AFTER });
for await (const event of events) say(event.message.subject);
"""


def started(live: LiveServer, name: str) -> tuple[Inbox, str]:
    """An inbox, and the event of its first mail."""
    with live.client() as client:
        inbox = client.create_inbox(name)
        live.deliver(raw_mail(subject="Before"), inbox.address)
        found = client.list_events(wait=60, inbox_ids=[inbox.id], event_types=["message.received"])
        return inbox, found.data[0].event_id


def heard(node: Any) -> Any:
    return json.loads(node.stdout.readline())


def test_the_stream_goes_on_behind_the_last_event_when_the_server_was_away(tmp_path: Path) -> None:
    ports = Ports.free()
    with ExitStack() as life:
        with running_server(tmp_path, ports) as live:
            inbox, before = started(live, "streamed")
            node = life.enter_context(running(live, tmp_path, STREAM, AFTER=before))
            live.deliver(raw_mail(subject="First"), inbox.address)
            assert heard(node) == "First"
        with running_server(tmp_path, ports) as live:
            live.deliver(raw_mail(subject="Second"), inbox.address)  # most likely before it is back
            assert heard(node) == "Second"


def test_without_a_websocket_of_its_own_node_takes_the_one_of_ws(live: LiveServer, tmp_path: Path) -> None:
    """As Node 20 is."""
    inbox, before = started(live, f"without-{time.time_ns()}")
    older = "delete globalThis.WebSocket;\n" + STREAM
    refused = (
        "delete globalThis.WebSocket;\nsay(await client.stream().next().catch((error) => error.message));"
    )
    with running(live, tmp_path, refused) as node:
        assert heard(node) == "There is no WebSocket here. Use Node 22 or newer, or run: npm install ws"
    shutil.copytree(PACKAGE / "src", tmp_path / "src")
    (tmp_path / "node_modules").symlink_to(
        generators.NODE_FOLDER / "node_modules"
    )  # agentmail's client has ws
    place = tmp_path / "older.mts"
    place.write_text(HEAD.replace(str(PACKAGE), str(tmp_path)) + older)
    with running_script(live, place, AFTER=before) as node:
        live.deliver(raw_mail(subject="Heard"), inbox.address)
        assert heard(node) == "Heard"


def test_a_revoked_key_ends_the_stream(live: LiveServer, tmp_path: Path) -> None:
    inbox, before = started(live, f"revoked-{time.time_ns()}")
    script = """
const events = client.stream({ lastEventId: process.env.AFTER });
say((await events.next()).value.message.subject);
say(await events.next().catch((error) => error.code));
"""
    with live.client() as client:
        key = client.create_key("stream")
        assert key.token is not None
        with running(live, tmp_path, script, key=key.token, AFTER=before) as node:
            live.deliver(raw_mail(subject="Heard"), inbox.address)
            assert heard(node) == "Heard"
            client.delete_key(key.id)
            assert heard(node) == "unauthorized"


def test_what_the_stream_refuses_is_told(node: "subprocess.Popen[str]", tmp_path: Path) -> None:
    script = """
const events = client.stream({ eventTypes: ["no.such.kind"] });
say(await events.next().catch((error) => error.code));
"""
    assert run(node, tmp_path, script) == ["stream_refused"]


def test_every_route_has_a_method() -> None:
    text = (PACKAGE / "src" / "operations.ts").read_text()
    paths = [route for route in ROUTES if route.path.startswith("/v1/")]
    assert text.count("return this.run({") == len(paths)


def test_the_package_needs_nothing_at_run_time() -> None:
    package = json.loads((PACKAGE / "package.json").read_text())
    assert (package["name"], package["version"], package["type"]) == ("@postroom/client", "1.0.0", "module")
    assert "dependencies" not in package


def test_the_program_of_the_first_page_answers_what_is_unread(
    live: LiveServer, inbox: Inbox, tmp_path: Path
) -> None:
    [program] = re.findall(r"^```ts\n(.*?)^```$", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    for written, here in (
        ("@postroom/client", f"{PACKAGE}/src/index.ts"),
        ("http://127.0.0.1:8025", live.base_url),
        ("hello@", inbox.address),
    ):
        program = program.replace(written, here)
    script = tmp_path / "program.mts"
    script.write_text(program)
    live.deliver(raw_mail("Are you there? Your code is 482913."), inbox.address)
    live.arrived(inbox)
    for answered in (1, 0):  # the second time nothing is unread
        done = subprocess.run(
            [str(NODE), str(script)],
            env=environment(live, API_KEY),
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("wrote: Are you there? Your code is 482913.") == answered


PROGRAM = """
import { Client, type Inbox } from "@postroom/client";
const client = new Client({ apiKey: 'pr_x', baseUrl: 'http://127.0.0.1:9' });
export const made: Promise<Inbox> = client.createInbox({ mailboxName: 'support' });
made.catch((error: Error) => console.log(error.name));
"""
TYPED = """
import type { components } from "./api.js";

type Send = components["schemas"]["SendBody"];
type Messages = components["schemas"]["MessagePage"];
type Events = components["schemas"]["EventPage"];
declare const process: { env: Record<string, string> };

async function call<T>(path: string, body?: unknown): Promise<T> {
  const headers = {
    Authorization: `Bearer ${process.env.KEY}`,
    "Content-Type": "application/json",
    "Idempotency-Key": crypto.randomUUID(),
  };
  const init = { method: body === undefined ? "GET" : "POST", headers, body: JSON.stringify(body) };
  const answer = await fetch(process.env.URL + path, init);
  if (!answer.ok) throw new Error(await answer.text());
  return (await answer.json()) as T;
}

async function main(): Promise<void> {
  const name = { mailboxName: "typed" } satisfies components["schemas"]["NewInbox"];
  const inbox = await call<components["schemas"]["Inbox"]>("/v1/inboxes", name);
  const mail: Send = { to: inbox.address, subject: "Typed", body: "By a generated client." };
  await call<components["schemas"]["SendReceipt"]>(`/v1/inboxes/${inbox.id}/send`, mail);
  const kinds = `inbox_ids=${inbox.id}&event_types=message.received&wait=60`;
  const events = await call<Events>(`/v1/events?${kinds}`);
  const event: string = events.data[0]!.message.subject;
  const messages = await call<Messages>(`/v1/inboxes/${inbox.id}/messages`);
  const subjects: string[] = messages.data.map((message) => message.subject);
  console.log(JSON.stringify({ event, subjects }));
}

main();
"""
STRICT = ["--strict", "--noUncheckedIndexedAccess", "--exactOptionalPropertyTypes", "--skipDefaultLibCheck"]
STRICT += ["--module", "nodenext", "--target", "es2023", "--lib", "es2023,dom,dom.iterable"]


def run_tool(folder: Path, *command: str, **environment: str) -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        env=generators.node_environment() | environment,
        capture_output=True,
        text=True,
        timeout=LONGEST_SECONDS,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.share(3, turn=1)
@pytest.mark.needs("node", "generators of clients")
def test_the_package_and_types_made_of_the_description_are_strict_and_run(
    live: LiveServer, tmp_path: Path
) -> None:
    tarball = pack(tmp_path / "package")
    project = tmp_path / "project"
    compile_project(project, tarball)
    assert (project / "program.js").exists()
    said = json.loads(run_tool(project, str(NODE), "typed.js", URL=live.base_url, KEY=API_KEY))
    assert said["event"] == "Typed"
    assert set(said["subjects"]) == {"Typed"}


def pack(folder: Path) -> Path:
    """The tarball, of modules with types."""
    shutil.copytree(PACKAGE, folder, ignore=shutil.ignore_patterns("node_modules", "dist"))
    said = run_tool(folder, path_of("npm"), "pack", "--json", "--offline")
    [packed] = json.loads(said[said.index("[") :])
    files = {file["path"] for file in packed["files"]}
    assert {"dist/index.js", "dist/index.d.ts", "dist/operations.js", "README.md"} <= files
    script = "import('./dist/index.js').then((found) => console.log(typeof found.Client))"
    assert run_tool(folder, str(NODE), "-e", script) == "function\n"
    tarball: str = packed["filename"]
    return folder / tarball


def compile_project(folder: Path, tarball: Path) -> None:
    """One program has the package, from its tarball alone, the other types that a generator made."""
    folder.mkdir()
    (folder / "package.json").write_text('{"type": "module"}')
    (folder / "program.ts").write_text(PROGRAM)
    (folder / "typed.ts").write_text(TYPED)
    (folder / "openapi.json").write_bytes(openapi.render(ROUTES, "https://mail.postroom.dev"))
    install = ["install", "--silent", "--offline", "--no-audit", "--no-fund"]
    run_tool(folder, path_of("npm"), *install, str(tarball))
    run_tool(folder, generators.node_program("openapi-typescript"), "openapi.json", "-o", "api.d.ts")
    run_tool(folder, generators.node_program("tsc"), *STRICT, "program.ts", "typed.ts")
