"""No inbox receives or pulls the email of a person, and no agent reads what the server writes to people."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest

from postroom.storage.database import Tx
from tests.api.test_dashboard import browser
from tests.api.test_keys import second_account
from tests.api.test_people import invite, links_of
from tests.conftest import Server, running_server, settings
from tests.doubles import FakeClock
from tests.outbound import send

OFFICE = "office.example"


def mailbox(username: str, inbox_id: str, **more: Any) -> dict[str, Any]:
    return {
        "kind": "imap",
        "host": "127.0.0.1",
        "port": 9,  # nobody listens
        "username": username,
        "password": "secret",
        "inboxId": inbox_id,
        **more,
    }


async def refused(server: Server, method: str, path: str, body: dict[str, Any]) -> str:
    answer = await server.api.request(method, path, json=body)
    assert (answer.status_code, answer.json()["error"]) == (409, "address_is_an_inbox"), answer.text
    return str(answer.json()["field"])


def with_reviewer(address: str) -> dict[str, Any]:
    return {"approval": {"when": ["always"], "reviewers": [address]}}


async def test_nobody_becomes_a_person_with_the_address_of_an_inbox(server: Server) -> None:
    inbox_id = await server.new_inbox("agent")
    made = await server.api.post("/v1/connections", json=mailbox("Office@Büro.example", inbox_id))
    assert made.status_code == 201, made.text
    pod = (await server.api.post("/v1/pods", json={})).json()["id"]
    for address in (
        "agent@postroom.localhost",
        "Agent+x@Postroom.localhost",
        "office@xn--bro-hoa.example",
        "OFFICE+tag@BÜRO.example",
        "office@büro.example.",
    ):
        assert await refused(server, "POST", "/v1/users", {"email": address, "role": "owner"}) == "email"
        target = {"targets": [{"kind": "email", "target": address, "on": ["held"]}]}
        assert await refused(server, "PUT", "/v1/notifications", target) == "targets"
        for method, path in (
            ("PATCH", f"/v1/inboxes/{inbox_id}"),
            ("PATCH", "/v1/account"),
            ("PATCH", f"/v1/pods/{pod}"),
            ("POST", "/v1/pods"),
            ("POST", "/v1/api-keys"),
            ("POST", f"/v1/inboxes/{inbox_id}/api-keys"),
        ):
            assert await refused(server, method, path, with_reviewer(address)) == "approval"
    more = {"mailboxName": "other", **with_reviewer("other@postroom.localhost")}
    assert await refused(server, "POST", "/v1/inboxes", more) == "approval"
    assert (await server.api.delete(f"/v1/connections/{made.json()['id']}")).status_code == 204
    await invite(server, "office@büro.example")


@pytest.mark.sqlite_alone
async def test_nobody_keeps_others_from_a_name_by_calling_it_a_reviewer(server: Server) -> None:
    """No notice goes to an address of this server, so the other account learns nothing."""
    async with server.client(await second_account(server)) as other:
        answer = await other.patch("/v1/account", json=with_reviewer("sales@postroom.localhost"))
        assert answer.status_code == 200, answer.text
        await server.new_inbox("sales")
        body = {"mailboxName": "info", **with_reviewer("info@postroom.localhost")}
        assert (await other.post("/v1/inboxes", json=body)).status_code == 409
    await server.api.patch("/v1/account", json=with_reviewer("help@postroom.localhost"))
    assert await refused(server, "POST", "/v1/inboxes", {"mailboxName": "help"}) == "mailboxName"


@pytest.mark.sqlite_alone
async def test_no_inbox_takes_the_address_of_a_person(server: Server) -> None:
    inbox_id = await server.new_inbox("agent")
    user = await invite(server, "Ann+work@corp.example")
    for body in (
        mailbox("ann@corp.example", inbox_id),
        mailbox("ANN+other@Corp.example", inbox_id),
        mailbox("anybody@else.example", inbox_id, address="ann@corp.example"),
        mailbox("ann@corp.example", inbox_id, address="anybody@else.example"),
    ):
        assert await refused(server, "POST", "/v1/connections", body) == "address"
    assert (await server.api.delete(f"/v1/users/{user['id']}")).status_code == 204
    answer = await server.api.post("/v1/connections", json=mailbox("ann@corp.example", inbox_id))
    assert answer.status_code == 201


async def test_no_inbox_takes_the_address_of_a_reviewer_or_of_a_target(server: Server) -> None:
    inbox_id = await server.new_inbox("agent")
    key = (await server.api.post("/v1/api-keys", json=with_reviewer("rita@corp.example"))).json()["id"]
    rita = mailbox("rita@corp.example", inbox_id)
    assert await refused(server, "POST", "/v1/connections", rita) == "address"
    assert (await server.api.delete(f"/v1/api-keys/{key}")).status_code == 204
    assert (await server.api.post("/v1/connections", json=rita)).status_code == 201
    for path in (f"/v1/inboxes/{inbox_id}", "/v1/account"):
        await server.api.patch(path, json=with_reviewer("boss@corp.example"))
        body = mailbox("boss@corp.example", inbox_id)
        assert await refused(server, "POST", "/v1/connections", body) == "address"
        await server.api.patch(path, json={"approval": None})
    target = {"kind": "email", "target": "ops@corp.example", "on": ["held"]}
    assert (await server.api.put("/v1/notifications", json={"targets": [target]})).status_code == 200
    body = mailbox("ops@corp.example", inbox_id)
    assert await refused(server, "POST", "/v1/connections", body) == "address"
    await server.api.patch("/v1/account", json={"approval": {"when": ["always"]}})
    assert await refused(server, "POST", "/v1/connections", body) == "address"


@pytest.mark.sqlite_alone
async def test_no_inbox_is_made_with_the_address_of_a_person(server: Server) -> None:
    """Their domain may be served only since."""
    await server.api.patch("/v1/account", json=with_reviewer("boss@postroom.localhost"))
    assert await refused(server, "POST", "/v1/inboxes", {"mailboxName": "boss"}) == "mailboxName"
    taken = await server.api.post("/v0/inboxes", json={"username": "boss"})
    assert taken.status_code == 403
    await server.api.patch("/v1/account", json={"approval": None})
    await server.new_inbox("boss")


def give_address(tx: Tx, inbox_id: str, address: str) -> None:
    tx.run("update inboxes set address = :address where id = :id", address=address, id=inbox_id)


async def test_a_user_from_before_whose_address_is_an_inbox_gets_no_link(server: Server) -> None:
    user = await invite(server, "ann@corp.example")
    await server.resources.db.write(give_address, await server.new_inbox("agent"), "ann@corp.example")
    [shown] = (await server.api.get("/v1/users")).json()["data"]
    assert shown["addressIsAnInbox"] is True
    [token] = await links_of(server, "invitation")
    async with browser(server) as page:
        opened = await page.post("/app/sign-in", data={"invitation": token})
        assert (opened.status_code, "passkey" in opened.text) == (401, True)
        again = await server.api.post(f"/v1/users/{user['id']}/invite")
        assert (again.status_code, again.json()["error"]) == (409, "address_is_an_inbox")
        await server.resources.db.write(lambda tx: tx.run("update users set state = 'active'"))
        assert (await page.post("/app/sign-in", data={"address": "ann@corp.example"})).status_code == 200
    assert await links_of(server, "mail") == []


@asynccontextmanager
async def servers(
    folder: Path, clock: FakeClock, database_url: str, other: FakeClock | None = None
) -> AsyncIterator[tuple[Server, Server]]:
    """The server, and the one where people have their mailboxes."""
    for name in ("here", "office"):
        (folder / name).mkdir()
    office_config = settings(folder / "office", DOMAIN=OFFICE, IMAP="127.0.0.1:0")
    async with running_server(office_config, other or clock) as office:
        config = settings(
            folder / "here", DATABASE_URL=database_url, OUTBOUND=f"smtp://127.0.0.1:{office.smtp_port}"
        )
        async with running_server(config, clock) as here:
            yield here, office


async def subjects(server: Server, inbox_id: str) -> list[str]:
    page = (await server.api.get(f"/v1/inboxes/{inbox_id}/messages?limit=100")).json()
    return sorted(each["subject"] for each in page["data"])


async def coming(server: Server, inbox_id: str, subject: str) -> bytes:
    """The bytes of an email, once it has come."""
    async with asyncio.timeout(120):
        while True:
            page = (await server.api.get(f"/v1/inboxes/{inbox_id}/messages?limit=100")).json()
            if found := [each["id"] for each in page["data"] if subject in each["subject"]]:
                return (await server.api.get(f"/v1/messages/{found[0]}/raw")).content
            await asyncio.sleep(0.05)


def plain(subject: str, **fields: str) -> bytes:
    head = {"From": "ada@example.org", "Subject": subject, "Message-ID": f"<{subject}@x>", **fields}
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in head.items())
    return f"{lines}\r\nHello\r\n".encode()


def attached(subject: str, text: str) -> bytes:
    return (
        f"From: ann@{OFFICE}\r\nSubject: {subject}\r\nMessage-ID: <{subject}@x>\r\nMIME-Version: 1.0\r\n"
        'Content-Type: text/plain; name="a.txt"\r\nContent-Disposition: attachment; filename="a.txt"\r\n'
        f"\r\n{text}\r\n"
    ).encode()


@pytest.mark.parametrize(
    "write", [attached, lambda subject, text: plain(subject).replace(b"Hello", text.encode())]
)
async def test_a_link_that_is_forwarded_to_an_inbox_no_longer_works(
    database_url: str, tmp_path: Path, clock: FakeClock, write: Callable[[str, str], bytes]
) -> None:
    """By hand, or by a rule that writes a new email around it."""
    async with servers(tmp_path, clock, database_url) as (here, office):
        ann, agent = await office.new_inbox("ann"), await here.new_inbox("agent")
        await here.api.patch(f"/v1/inboxes/{agent}", json=with_reviewer(f"ann@{OFFICE}"))
        await invite(here, f"ann@{OFFICE}")
        letter = message_from_bytes(await coming(office, ann, "invited"), policy=policy.default)
        await send(here, agent, "carol@elsewhere.example", body="Buy")
        notice = message_from_bytes(await coming(office, ann, "To approve"), policy=policy.default)
        assert isinstance(letter, EmailMessage)
        assert isinstance(notice, EmailMessage)
        invitation = re.search(r"invitation=([\w-]+)", text_of(letter))
        review = re.search(r"/review/\w+", text_of(notice))
        assert invitation is not None
        assert review is not None
        async with browser(here) as page:
            assert (await page.get(review[0])).status_code == 200
            await here.deliver(
                write("forged", f"{here.base_url}/review/{'a' * 56} sign-in?mail={'a' * 43}"), "agent"
            )
            await coming(here, agent, "forged")
            assert (await page.get(review[0])).status_code == 200
            for number, original in enumerate((letter, notice)):
                quoted = "".join(f"> {line}\r\n" for line in text_of(original).splitlines())
                await here.deliver(write(f"forwarded-{number}", quoted), "agent")
                await coming(here, agent, f"forwarded-{number}")
            await until_examined(here)
            assert (await page.get(review[0])).status_code == 404
            opened = await page.post("/app/sign-in", data={"invitation": invitation[1]})
            assert opened.status_code == 401


def below_false_links(token: str) -> bytes:
    """As an agent may write them into the email that a notice shows above its link."""
    false = "".join(
        f"https://x.example/review/{token[:50]}{number:06d}\r\n" for number in range(222_222, 224_000)
    )
    return plain("false").replace(b"Hello", f"{false}https://x.example/review/{token}".encode())


def as_answer(token: str) -> bytes:
    return plain("answered", To=f"Review+{token.upper()}@postroom.localhost, agent@postroom.localhost")


def as_copied_answer(token: str) -> bytes:
    return plain("copied", To="agent@postroom.localhost", Cc=f"review+{token}@postroom.localhost")


def as_quoted_address(token: str) -> bytes:
    return plain("quoted").replace(b"Hello", f"> Reply-To: review+{token}@postroom.localhost".encode())


@pytest.mark.sqlite_alone
@pytest.mark.parametrize("write", [below_false_links, as_answer, as_copied_answer, as_quoted_address])
async def test_a_link_of_a_reviewer_ends_in_whatever_form_an_inbox_gets_it(
    database_url: str, tmp_path: Path, clock: FakeClock, write: Callable[[str], bytes]
) -> None:
    """The address of a notice has the token of its link: an agent that reads it could write the link."""
    async with servers(tmp_path, clock, database_url) as (here, office):
        ann, agent = await office.new_inbox("ann"), await here.new_inbox("agent")
        await here.api.patch(f"/v1/inboxes/{agent}", json=with_reviewer(f"ann@{OFFICE}"))
        await send(here, agent, "carol@elsewhere.example", body="Buy")
        notice = message_from_bytes(await coming(office, ann, "To approve"), policy=policy.default)
        assert isinstance(notice, EmailMessage)
        review = re.search(r"/review/(\w+)", text_of(notice))
        assert review is not None
        async with browser(here) as page:
            assert (await page.get(review[0])).status_code == 200
            raw = write(review[1])
            await here.deliver(raw, "agent")
            await coming(here, agent, str(message_from_bytes(raw)["Subject"]))
            assert (await page.get(review[0])).status_code == 404


def text_of(mail: EmailMessage) -> str:
    body = mail.get_body(("plain",))
    assert body is not None
    return str(body.get_content())


async def until_examined(server: Server) -> None:
    async with asyncio.timeout(120):
        while await server.resources.db.read(lambda tx: tx.all("select message_id from examinations")):
            await asyncio.sleep(0.02)


async def test_no_agent_reads_what_the_server_writes_to_people(
    database_url: str, tmp_path: Path, clock: FakeClock
) -> None:
    async with servers(tmp_path, clock, database_url) as (here, office):
        ann, desk = await office.new_inbox("ann"), await office.new_inbox("desk")
        agent, pulling = await here.new_inbox("agent"), await here.new_inbox("pulling")
        body = mailbox(f"desk@{OFFICE}", pulling, password=office.token, since="2020-01-01")
        body |= {"port": office.imap_port, "after": "seen"}
        assert (await here.api.post("/v1/connections", json=body)).status_code == 201
        await here.api.patch(f"/v1/inboxes/{agent}", json=with_reviewer(f"ann@{OFFICE}"))
        await invite(here, f"ann@{OFFICE}")
        letters = [await coming(office, ann, "invited")]
        await send(here, agent, "carol@elsewhere.example", body="Buy")
        letters.append(await coming(office, ann, "To approve"))
        ids = [message_from_bytes(raw, policy=policy.default)["Message-ID"] for raw in letters]
        forged = f"{ids[0][8:40]}{'a' * 16}"
        others = [
            plain("forged", X_Postroom_Letter=forged, Message_ID=f"<letter.{forged}@x>"),
            plain("nonsense", X_Postroom_Letter="\x80" * 60, Message_ID="<letter.@x>"),
            plain("answer", In_Reply_To=ids[0], References=" ".join(ids)),
            b"Subject: quoting\r\n\r\n" + letters[0],
            plain("last"),
        ]
        # A relay may have changed the Message-ID, or removed the field.
        letters.append(letters[0].replace(ids[0].encode(), b"<1@relay.example>"))
        letters.append(letters[0].replace(b"X-Postroom-Letter", b"X-Other"))
        for raw in (*letters, *others):
            await here.deliver(raw, "agent", sender="ann@office.example")
            await office.deliver_to(raw, f"desk@{OFFICE}")
        wanted = ["answer", "forged", "last", "nonsense", "quoting"]
        for subject in wanted:
            await coming(here, agent, subject)
            await coming(here, pulling, subject)
        assert [each for each in await subjects(here, agent) if each != "Hello"] == wanted
        assert await subjects(here, pulling) == wanted
        unread = (await office.api.get(f"/v1/inboxes/{desk}/threads?is_read=false")).json()["total"]
        assert unread >= len(letters) - 2  # the person still finds them as new
