"""The address of a mailbox elsewhere counts after a login, and gives no trust inside the server."""

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace

from postroom.inward.mails import UNKNOWN_PEER, Arrival, ReadMail
from postroom.inward.receive import AT_ONCE_BYTES, OwnReader
from postroom.storage.database import Tx
from tests.api.test_people import invite
from tests.conftest import Server
from tests.connections.test_people_and_inboxes import OFFICE, mailbox, servers
from tests.doubles import FakeClock
from tests.stepped import House, stepped

SMTP = {"host": "127.0.0.1", "port": 9}


async def external_address(server: Server, inbox_id: str) -> str | None:
    found: str | None = (await server.api.get(f"/v1/inboxes/{inbox_id}")).json()["externalAddress"]
    return found


async def until(server: Server, connection_id: str, state: str) -> str | None:
    """Returns the error that is shown then."""
    async with asyncio.timeout(120):
        while (shown := (await server.api.get(f"/v1/connections/{connection_id}")).json())["state"] != state:
            await asyncio.sleep(0.02)
    error: str | None = shown["lastError"]
    return error


@pytest.mark.sqlite_alone
async def test_an_address_counts_after_a_login_that_worked(
    database_url: str, tmp_path: Path, clock: FakeClock
) -> None:
    async with servers(tmp_path, clock, database_url) as (here, office):
        await office.new_inbox("desk")
        inbox_id, orders = await here.new_inbox("agent"), await here.new_inbox("orders")
        body = mailbox(f"desk@{OFFICE}", inbox_id, port=office.imap_port, smtp=SMTP)
        body["plusAddresses"] = {"orders": orders}
        made = (await here.api.post("/v1/connections", json=body)).json()
        await until(here, made["id"], "failing")
        path = f"/v1/connections/{made['id']}"
        assert (await here.api.patch(path, json={"after": "seen"})).status_code == 200
        assert await external_address(here, inbox_id) is None
        assert await external_address(here, orders) is None
        assert (await here.api.patch(path, json={"password": office.token})).status_code == 200
        await until(here, made["id"], "live")
        assert await external_address(here, inbox_id) == f"desk@{OFFICE}"
        assert await external_address(here, orders) == f"desk+orders@{OFFICE}"
        assert (await here.api.patch(path, json={"plusAddresses": {}})).status_code == 200
        assert await external_address(here, orders) is None


async def test_a_mailbox_of_another_account_is_not_read_once_a_person_has_its_address(
    database_url: str, tmp_path: Path, clock: FakeClock
) -> None:
    """Until its login works, its address is a claim that keeps nobody out."""

    def give_away(tx: Tx) -> None:
        tx.run("insert into accounts (id, name, plan, created_at) values ('acc_other', 'other', 'free', 1)")
        tx.run("update connections set account_id = 'acc_other'")

    async with servers(tmp_path, clock, database_url) as (here, office):
        await office.new_inbox("desk")
        body = mailbox(f"desk@{OFFICE}", await here.new_inbox("agent"), port=office.imap_port)
        made = (await here.api.post("/v1/connections", json=body)).json()
        await until(here, made["id"], "failing")
        first = (await here.api.get("/v1/me")).json()["accountId"]
        await here.resources.db.write(give_away)
        await invite(here, f"desk@{OFFICE}")

        def log_in(tx: Tx) -> None:
            tx.run("update connections set account_id = :id, state = 'connecting'", id=first)

        await here.resources.db.write(log_in)
        path = f"/v1/connections/{made['id']}"
        assert (await here.api.patch(path, json={"password": office.token})).status_code == 200
        assert "belongs to a person" in (await until(here, made["id"], "failing") or "")


@pytest.mark.sqlite_alone
async def test_a_mailbox_elsewhere_has_no_address_of_this_server_but_its_own(server: Server) -> None:
    agent, other = await server.new_inbox("agent"), await server.new_inbox("boss")
    own = mailbox("agent@postroom.localhost", agent)
    for body in (
        mailbox("boss@postroom.localhost", agent),
        mailbox("x@else.example", agent, address="Boss@Postroom.localhost"),
        mailbox("nobody@postroom.localhost", agent),
        own | {"plusAddresses": {"x": other}},
    ):
        answer = await server.api.post("/v1/connections", json=body)
        assert (answer.status_code, answer.json()["field"]) == (400, "address")
    made = await server.api.post("/v1/connections", json=own)
    assert made.status_code == 201
    path = f"/v1/connections/{made.json()['id']}"
    assert (await server.api.patch(path, json={"plusAddresses": {"x": other}})).status_code == 400


class Watching(OwnReader):
    """Sees from where email comes in."""

    def __init__(self) -> None:
        super().__init__(AT_ONCE_BYTES)
        self.peers: list[str] = []

    async def read(self, arrival: Arrival) -> ReadMail:
        self.peers.append(arrival.origin.peer_ip)
        return await super().read(arrival)


@pytest.mark.parametrize(
    ("external", "peers", "status"),
    [
        (None, [""], "sent"),
        ("ceo@bank.example", [UNKNOWN_PEER], "sent"),
        ("boss@postroom.localhost", [], "failed"),  # its domain may be served only since
    ],
)
async def test_email_inside_is_trusted_only_with_the_inboxs_own_address(
    database_url: str,
    tmp_path: Path,
    clock: FakeClock,
    external: str | None,
    peers: list[str],
    status: str,
) -> None:
    async with stepped(tmp_path, database_url, clock, ALLOW_PRIVATE_WEBHOOKS="on") as house:
        await require_trust(house, external, peers, status)


async def require_trust(house: House, external: str | None, peers: list[str], status: str) -> None:
    agent = await house.inbox("agent")
    await house.inbox("bob")
    if external:
        made = await house.api.post(
            "/v1/connections", json=mailbox("agent@bank.example", agent, smtp=SMTP, port=9)
        )
        assert made.status_code == 201, made.text

        def prove(tx: Tx) -> None:
            tx.run(
                "update inboxes set external_address = :address, connection_id = :way where id = :id",
                address=external,
                way=made.json()["id"],
                id=agent,
            )

        await house.resources.db.write(prove)
    watching = Watching()
    house.outbound = replace(house.outbound, reader=watching)
    sent = await house.send(agent, "bob@postroom.localhost")
    await house.step()
    assert watching.peers == peers
    assert (await house.message(sent["id"]))["status"] == status
