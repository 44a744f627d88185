"""Limits belong to the operator: the server's by settings, an account's own by command."""

from pathlib import Path

import httpx2
import pytest

from postroom import config as configuration
from postroom.accounts import accounts, domains
from postroom.accounts.rules import limits
from postroom.accounts.rules.limits import SPECIFIED
from postroom.clock import MINUTE
from postroom.storage.database import Tx
from tests.conftest import Server, running_server, settings
from tests.doubles import FakeClock

NONE = dict.fromkeys(("SENDS_PER_MINUTE", "SENDS_PER_DAY", "COLD_PER_DAY", "INBOXES_PER_DAY"), "0")


async def send(server: Server, inbox_id: str, number: int) -> httpx2.Response:
    body = {"to": f"{number}@example.com", "subject": "s", "body": "t"}
    headers = {"Idempotency-Key": f"k-{number}"}
    return await server.api.post(f"/v1/inboxes/{inbox_id}/send", json=body, headers=headers)


def set_limits(tx: Tx, account_id: str, own: dict[str, int]) -> None:
    accounts.set_limits(tx, accounts.get(tx, account_id), limits.encode_own(own))


def test_the_defaults_are_those_of_the_specification(tmp_path: Path) -> None:
    config = configuration.load({"POSTROOM_DATA_DIR": str(tmp_path)})
    assert limits.in_force(config, None) == SPECIFIED


async def test_an_account_has_the_limits_that_were_set_for_it(
    database_url: str, tmp_path: Path, clock: FakeClock
) -> None:
    given = {"SENDS_PER_MINUTE": "2", "COLD_PER_DAY": "3", "REQUESTS_PER_MINUTE": "1000"}
    config = settings(tmp_path, DATABASE_URL=database_url, **given)
    async with running_server(config, clock) as server:
        inbox_id = await server.new_inbox("hello")
        asked = await server.api.get("/v1/me")
        assert asked.headers["RateLimit-Limit"] == "1000"
        me = asked.json()
        assert me["limits"] == {
            "sendsPerMinute": 2,
            "sendsPerDay": 200,
            "coldPerDay": 3,
            "inboxesPerDay": 100,
            "requestsPerMinute": 1000,
        }
        statuses = [(await send(server, inbox_id, number)).status_code for number in range(3)]
        assert statuses == [200, 200, 429]
        clock.turn(MINUTE)
        statuses = [(await send(server, inbox_id, number)).status_code for number in range(3, 5)]
        assert statuses == [200, 429]
        own = {"sends_per_minute": 0, "cold_per_day": 5, "requests_per_minute": 0}
        await server.resources.db.write(set_limits, me["accountId"], own)
        answers = [await send(server, inbox_id, number) for number in range(5, 8)]
        assert [answer.status_code for answer in answers] == [200, 200, 429]
        assert answers[-1].json()["error"] == "cold_outreach_limit"
        assert "RateLimit-Limit" not in answers[1].headers
        meters = (await server.api.get(f"/v1/inboxes/{inbox_id}/limits")).json()
        assert (meters["perMinute"]["limit"], meters["perMinute"]["used"]) == (None, 3)
        assert (meters["coldPerDay"]["limit"], meters["coldPerDay"]["used"]) == (5, 5)


@pytest.mark.sqlite_alone
async def test_without_limits_inboxes_and_keys_may_still_be_limited(tmp_path: Path, clock: FakeClock) -> None:
    async with running_server(settings(tmp_path, **NONE), clock) as server:
        inbox_id = await server.new_inbox("hello")
        for number in range(12):
            assert (await send(server, inbox_id, number)).status_code == 200
        changed = await server.api.patch(f"/v1/inboxes/{inbox_id}", json={"limits": {"perDay": 5_000}})
        assert changed.json()["limits"]["perDay"] == 5_000
        too_many = await server.api.patch(f"/v1/inboxes/{inbox_id}", json={"limits": {"perDay": 1_000_001}})
        assert (too_many.status_code, too_many.json()["field"]) == (400, "limits")
        key = await server.api.post("/v1/api-keys", json={"limits": {"perMinute": 50}})
        assert key.json()["limits"]["perMinute"] == 50
        await server.api.patch(f"/v1/inboxes/{inbox_id}", json={"limits": {"perDay": 12}})
        assert (await send(server, inbox_id, 12)).status_code == 429


def add_verified(tx: Tx, account_id: str, name: str, now: int) -> None:
    domain = domains.add(tx, account_id, name, b"-", now)
    domains.mark_verified(tx, domain, now)


@pytest.mark.sqlite_alone
async def test_reserved_names_go_to_an_account_key_on_a_domain_of_its_own(
    tmp_path: Path, clock: FakeClock
) -> None:
    async with running_server(settings(tmp_path, DOMAIN="mail.example.com"), clock) as server:
        account_id = (await server.api.get("/v1/me")).json()["accountId"]
        await server.resources.db.write(add_verified, account_id, "own.example.com", clock.now())
        asked = {"mailboxName": "postmaster", "domain": "own.example.com"}
        assert (await server.api.post("/v1/inboxes", json=asked)).json()["error"] == "address_taken"
        made = await server.api.post("/v1/inboxes", json={**asked, "allowReserved": True})
        assert made.json()["address"] == "postmaster@own.example.com"
        of_server = await server.api.post("/v1/inboxes", json={"mailboxName": "abuse", "allowReserved": True})
        assert of_server.status_code == 201
        pod = (await server.api.post("/v1/pods", json={})).json()["id"]
        key = (await server.api.post(f"/v1/pods/{pod}/api-keys", json={})).json()["token"]
        async with server.client(key) as of_pod:
            refused = await of_pod.post("/v1/inboxes", json={"mailboxName": "admin", "allowReserved": True})
        assert refused.status_code == 403


@pytest.mark.sqlite_alone
async def test_reserved_names_stay_reserved_at_home(server: Server, tmp_path: Path, clock: FakeClock) -> None:
    asked = {"mailboxName": "postmaster", "allowReserved": True}
    assert (await server.api.post("/v1/inboxes", json=asked)).json()["error"] == "address_taken"
