"""Custom domains: added, proved by DNS, used for inboxes that send and receive, and deleted."""

import asyncio
import contextlib
import functools
import io
import itertools
import json
import smtplib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from postroom.__main__ import main
from postroom.accounts import accounts, keys
from postroom.accounts.domains import SERVICE_ID
from postroom.clock import DAY
from postroom.deliverability.watch_domains import look_at_some
from postroom.net.dns import Resolver
from postroom.storage.database import Tx
from postroom_mail.authentication import dkim
from tests.api.test_dashboard import signed_in
from tests.conftest import Server, settings
from tests.couriers.smtp_peer import SmtpPeer
from tests.doubles import FakeClock
from tests.doubles_dns import DnsServer
from tests.mail.keys import new_key, signing_key
from tests.mail.test_dkim import verdicts
from tests.outbound import is_signed, relay_to, running, send, settled

pytestmark = pytest.mark.sqlite_alone

OURS = "mail.ours.example"


@functools.cache
def few_keys() -> list[bytes]:
    """As many as a test needs to tell apart: making one takes longer than most tests."""
    return [signing_key(), new_key()]


@pytest.fixture
async def dns() -> AsyncIterator[DnsServer]:
    async with DnsServer() as server:
        yield server


@pytest.fixture
async def peer() -> AsyncIterator[SmtpPeer]:
    async with SmtpPeer() as peer:
        yield peer


@pytest.fixture
async def host(
    database_url: str,
    tmp_path: Path,
    clock: FakeClock,
    dns: DnsServer,
    peer: SmtpPeer,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[Server]:
    monkeypatch.setattr(dkim, "generate_key", functools.partial(next, itertools.cycle(few_keys())))
    seconds = iter(range(0, 10**9, 3600))  # every look at this clock finds the cache expired
    resolver = Resolver([dns.address], deadline_seconds=20, monotonic=lambda: next(seconds))
    async with running(tmp_path, database_url, clock, relay_to(peer), resolver) as server:
        yield server


async def add(api: httpx2.AsyncClient, name: str = OURS) -> dict[str, Any]:
    answer = await api.post("/v1/domains", json={"domain": name})
    assert answer.status_code == 201, answer.text
    domain: dict[str, Any] = answer.json()
    return domain


def publish(dns: DnsServer, domain: dict[str, Any], *, only_required: bool = False) -> None:
    for record in domain["records"]:
        if record["required"] or not only_required:
            dns.records[record["name"], record["type"]] = [record["value"]]


async def verified(host: Server, dns: DnsServer, name: str = OURS) -> dict[str, Any]:
    domain = await add(host.api, name)
    publish(dns, domain)
    answer = (await host.api.post(f"/v1/domains/{domain['id']}/verify")).json()
    assert answer["status"] == "verified", answer
    return domain


async def stranger_of(host: Server) -> httpx2.AsyncClient:
    token = keys.new_token()
    account = await host.resources.db.write(accounts.add, "other", "free", host.clock.now())
    await host.resources.db.write(keys.add, account.id, None, "k", token, host.clock.now())
    return host.client(token)


async def test_a_new_domain_lists_the_records_to_set(host: Server) -> None:
    domain = await add(host.api, "Mail.Ours.Example")
    assert (domain["domain"], domain["status"], domain["verifiedAt"]) == (OURS, "pending", None)
    records = {(record["type"], record["name"]): record for record in domain["records"]}
    assert records["MX", OURS]["value"] == "10 postroom.localhost."
    assert records["TXT", f"postroom._domainkey.{OURS}"]["value"].startswith("v=DKIM1; k=rsa; p=MII")
    assert records["TXT", OURS]["value"] == "v=spf1 include:postroom.localhost ~all"
    assert records["TXT", f"_dmarc.{OURS}"]["value"].startswith("v=DMARC1;")
    assert (await host.api.get(f"/v1/domains/{domain['id']}")).json() == domain
    listed = (await host.api.get("/v1/domains")).json()
    assert (listed["data"][1:], listed["total"]) == ([domain], 2)
    own = listed["data"][0]
    assert (own["domain"], own["system"], own["podId"], own["status"]) == (
        "postroom.localhost",
        True,
        None,
        "verified",
    )
    assert (await host.api.get("/v1/domains", params={"limit": 1})).json() == {"data": [own], "total": 2}
    behind = (await host.api.get("/v1/domains", params={"limit": 1, "offset": 1})).json()
    assert behind == {"data": [domain], "total": 2}
    kept = await host.api.delete(f"/v1/domains/{own['id']}")
    assert (kept.status_code, kept.json()["error"]) == (409, "domain_taken")


async def test_what_is_no_domain_or_the_services_own_is_refused(host: Server) -> None:
    refusals = [(400, "invalid_domain"), (400, "bad_request")]
    for name in ("", "nodot", "-a.example", "a..example", "a b.example", "postroom.localhost", "a" * 300):
        answer = await host.api.post("/v1/domains", json={"domain": name})
        assert (answer.status_code, answer.json()["error"]) in refusals, name
        assert answer.json()["field"] == "domain", name
        assert (await host.api.get("/v1/domains")).json()["total"] == 1, "the server's own"


async def test_verifying_says_which_records_are_there(host: Server, dns: DnsServer) -> None:
    domain = await add(host.api)
    path = f"/v1/domains/{domain['id']}/verify"
    nothing = (await host.api.post(path)).json()
    assert (nothing["status"], [record["found"] for record in nothing["records"]]) == ("pending", [False] * 5)
    dns.records[OURS, "MX"] = ["5 elsewhere.example.", "10 postroom.localhost."]
    some = (await host.api.post(path)).json()
    assert (some["status"], [record["found"] for record in some["records"]]) == (
        "pending",
        [True, False, False, False, False],
    )
    publish(dns, domain, only_required=True)
    proved = (await host.api.post(path)).json()
    assert proved["status"] == "verified"
    assert [record["found"] for record in proved["records"]] == [True, True, False, False, False]
    dns.servfail.add("*")
    again = (await host.api.post(path)).json()
    assert again["status"] == "verified", "what was proved stays so when DNS is down"


async def test_another_key_in_dns_proves_nothing_and_spaces_in_ours_do_no_harm(
    host: Server, dns: DnsServer
) -> None:
    domain = await add(host.api)
    publish(dns, domain)
    name = f"postroom._domainkey.{OURS}"
    (ours,) = dns.records[name, "TXT"]
    assert isinstance(ours, str)
    path = f"/v1/domains/{domain['id']}/verify"
    for wrong in ("v=DKIM1; p=", "v=DKIM1; k=rsa; p=AAAA", f"{ours}AAAA", f"x{ours.replace('p=', 'q=')}"):
        dns.records[name, "TXT"] = [wrong]
        assert (await host.api.post(path)).json()["status"] == "pending", wrong
    dns.records[name, "TXT"] = [ours.replace("p=MII", "p= MII ") + ";"]
    assert (await host.api.post(path)).json()["status"] == "verified"


async def test_a_domain_belongs_to_whoever_proved_it_first(host: Server, dns: DnsServer) -> None:
    theirs_api = await stranger_of(host)
    async with theirs_api:
        theirs = await add(theirs_api)  # nobody has proved it yet
        await verified(host, dns)
        again = await theirs_api.post("/v1/domains", json={"domain": OURS})
        assert (again.status_code, again.json()["error"]) == (409, "domain_taken")
        assert again.json()["field"] == "domain"
        publish(dns, theirs)
        taken = await theirs_api.post(f"/v1/domains/{theirs['id']}/verify")
        assert (taken.status_code, taken.json()["error"]) == (409, "domain_taken")
        refused = await theirs_api.post("/v1/inboxes", json={"mailboxName": "bob", "domain": OURS})
        assert (refused.status_code, refused.json()["error"]) == (400, "invalid_domain")
        assert (await host.api.get(f"/v1/domains/{theirs['id']}")).status_code == 404


async def test_two_accounts_that_verify_at_once_are_told_apart(host: Server, dns: DnsServer) -> None:
    async with await stranger_of(host) as theirs_api:
        mine, theirs = await add(host.api), await add(theirs_api)
        publish(dns, mine)
        name = f"postroom._domainkey.{OURS}"
        dns.records[name, "TXT"] = [
            record["value"]
            for domain in (mine, theirs)
            for record in domain["records"]
            if record["name"] == name
        ]
        answers = await asyncio.gather(
            host.api.post(f"/v1/domains/{mine['id']}/verify"),
            theirs_api.post(f"/v1/domains/{theirs['id']}/verify"),
        )
    assert sorted(answer.status_code for answer in answers) == [200, 409]


async def test_an_inbox_on_a_proved_domain_sends_with_its_key_and_receives(
    host: Server, dns: DnsServer, peer: SmtpPeer
) -> None:
    early = await host.api.post("/v1/inboxes", json={"mailboxName": "bob", "domain": OURS})
    assert (early.status_code, early.json()["error"]) == (400, "invalid_domain")
    await verified(host, dns)
    inbox = (await host.api.post("/v1/inboxes", json={"mailboxName": "bob", "domain": OURS})).json()
    assert inbox["address"] == f"bob@{OURS}"
    message = await settled(host, await send(host, inbox["id"], "carol@there.example"))
    assert message["status"] == "sent"
    (mail,) = peer.mails
    account_id = (await host.api.get("/v1/me")).json()["accountId"]
    assert b"d=mail.ours.example;" in mail.raw
    assert await is_signed(host, mail.raw, OURS, owner=account_id)
    assert mail.mail_line.split(b">")[0].endswith(f"@{OURS}".encode())

    def write_to_bob() -> None:
        with smtplib.SMTP("127.0.0.1", host.smtp_port, timeout=120) as smtp:
            smtp.sendmail("carol@there.example", [f"Bob+tag@{OURS.upper()}"], b"Subject: Hi\r\n\r\nHello\r\n")

    await asyncio.to_thread(write_to_bob)
    page = (await host.api.get(f"/v1/inboxes/{inbox['id']}/messages", params={"direction": "inbound"})).json()
    assert [received["toAddr"] for received in page["data"]] == [f"bob@{OURS}"]


async def test_a_domain_in_use_is_kept_and_an_unused_one_goes(host: Server, dns: DnsServer) -> None:
    domain = await verified(host, dns)
    path = f"/v1/domains/{domain['id']}"
    inbox = (await host.api.post("/v1/inboxes", json={"mailboxName": "bob", "domain": OURS})).json()
    in_use = await host.api.delete(path)
    assert (in_use.status_code, in_use.json()["error"]) == (409, "domain_taken")
    await host.api.delete(f"/v1/inboxes/{inbox['id']}")
    assert (await host.api.delete(path)).status_code == 204
    assert (await host.api.delete(path)).status_code == 404
    assert (await host.api.get(path)).status_code == 404
    refused = await host.api.post("/v1/inboxes", json={"mailboxName": "bob", "domain": OURS})
    assert refused.json()["error"] == "invalid_domain"
    old, new = [
        next(
            record["value"] for record in each["records"] if record["name"].startswith("postroom._domainkey.")
        )
        for each in (domain, await add(host.api))
    ]
    assert old != new, "a new key"


@pytest.mark.both_databases
async def test_new_keys_wait_for_their_records_and_the_old_record_may_go_a_week_later(
    host: Server, dns: DnsServer, peer: SmtpPeer
) -> None:
    domain = await verified(host, dns)
    path = f"/v1/domains/{domain['id']}"
    shown = (await host.api.get(path)).json()["dkim"]
    assert [(key["selector"], key["algorithm"], key["state"]) for key in shown] == [
        ("postroom", "rsa", "active"),
        ("postroom-ed25519", "ed25519", "active"),
    ]
    host.clock.turn(1000)
    rotated = (await host.api.post(f"{path}/rotate-dkim")).json()
    assert [key["state"] for key in rotated["dkim"]] == ["active", "active", "waiting", "waiting"]
    assert (await host.api.post(f"{path}/rotate-dkim")).json()["error"] == "nothing_to_do"
    publish(dns, rotated)
    host.clock.turn(DAY)
    await look_at_some(host.resources)
    async with signed_in(host) as page:
        text = (await page.get("/app/settings/domains")).text
        zone = (await page.get(f"/app/settings/domains/{domain['id']}/zone")).text
        host.clock.turn(7 * DAY)
        later = (await page.get(f"/app/settings/domains/{domain['id']}/zone")).text
        again = await page.post(f"/app/settings/domains/{domain['id']}/rotate")
    assert f"postroom._domainkey.{OURS}</code> until" in text
    assert f"postroom._domainkey.{OURS}." in zone
    assert f"\npostroom._domainkey.{OURS}." not in later
    assert again.status_code == 303
    states = [key["state"] for key in (await host.api.get(path)).json()["dkim"]]
    assert states == ["retired", "retired", "active", "active", "waiting", "waiting"]
    inbox = (await host.api.post("/v1/inboxes", json={"mailboxName": "bob", "domain": OURS})).json()
    await settled(host, await send(host, inbox["id"], "carol@there.example"))
    (mail,) = peer.mails
    assert [mail.raw.count(f"a={each}-sha256".encode()) for each in ("rsa", "ed25519")] == [1, 1]
    assert rotated["dkim"][2]["selector"].encode() in mail.raw
    records = {record["name"]: record["value"] for record in rotated["records"] if record["type"] == "TXT"}
    assert verdicts(mail.raw, records) == ["pass", "pass"]
    audit = (await host.api.get("/v1/audit", params={"limit": 100})).json()["data"]
    assert {"domain.dkim_rotated", "domain.dkim_switched"} <= {entry["action"] for entry in audit}


async def test_only_who_runs_the_server_changes_the_keys_of_its_own_domain(
    host: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = f"/v1/domains/{SERVICE_ID}/rotate-dkim"
    async with asyncio.timeout(120):  # it is made after the start
        while not (await host.api.get(f"/v1/domains/{SERVICE_ID}")).json()["dkim"]:
            await asyncio.sleep(0.02)
    own = (await host.api.post(path)).json()
    assert [key["state"] for key in own["dkim"]] == ["active", "waiting", "waiting"]
    monkeypatch.setattr(dkim, "generate_key", None)  # no key is made for who is refused
    async with await stranger_of(host) as theirs_api:
        assert (await theirs_api.post(path)).status_code == 403
    assert (await host.api.post(path)).json()["error"] == "nothing_to_do"
    assert (await host.api.post("/v1/domains/none/rotate-dkim")).status_code == 404


def show(folder: Path, database_url: str, *flags: str) -> str:
    """The command in this process: to start another takes longer."""
    printed = io.StringIO()
    with pytest.MonkeyPatch.context() as environment, contextlib.redirect_stdout(printed):
        environment.setenv("POSTROOM_DATA_DIR", str(folder))
        environment.setenv("POSTROOM_DATABASE_URL", database_url)
        with pytest.raises(SystemExit, match="0"):
            main(["domains", "show", *flags])
    return printed.getvalue()


@pytest.mark.both_databases
async def test_domains_show_prints_the_records_of_the_service_and_of_accounts(
    host: Server, dns: DnsServer, tmp_path: Path, database_url: str
) -> None:
    domain = await verified(host, dns)
    await add(host.api, "later.example")
    printed = json.loads(await asyncio.to_thread(show, tmp_path, database_url, "--json"))["data"]
    assert [(entry["domain"], entry["status"]) for entry in printed] == [
        ("postroom.localhost", "the service's own"),
        ("later.example", "not verified yet"),
        (OURS, "verified"),
    ]
    values = [record["value"] for record in printed[2]["records"]]
    assert values == [record["value"] for record in domain["records"]]
    own = {(record["type"], record["name"]): record["value"] for record in printed[0]["records"]}
    assert own["MX", "postroom.localhost"] == "10 postroom.localhost."
    assert own["TXT", "postroom.localhost"] == "v=spf1 mx a ~all"
    text = await asyncio.to_thread(show, tmp_path, database_url, "--no-json")
    assert f"{OURS} (verified)" in text
    assert f"postroom._domainkey.{OURS}. 3600 IN TXT" in text


async def test_domains_show_makes_the_key_if_no_server_has_yet(tmp_path: Path) -> None:
    settings(tmp_path)  # makes a database
    (first,) = json.loads(await asyncio.to_thread(show, tmp_path, "", "--json"))["data"]
    (second,) = json.loads(await asyncio.to_thread(show, tmp_path, "", "--json"))["data"]
    assert first == second
    assert any(record["value"].startswith("v=DKIM1") for record in first["records"])


async def test_the_page_shows_what_was_found_and_how_the_world_reaches_the_server(
    host: Server, dns: DnsServer
) -> None:
    service = host.resources.config.domain
    dns.records[service, "A"] = ["127.0.0.1"]
    dns.records["1.0.0.127.in-addr.arpa", "PTR"] = ["other.example."]
    dns.records[OURS, "MX"] = ["10 elsewhere.example."]
    domain = await add(host.api)
    async with signed_in(host) as page:
        before = (await page.get("/app/settings/domains")).text
        shown = (await page.post(f"/app/settings/domains/{domain['id']}/check")).text
        zone = (await page.get(f"/app/settings/domains/{domain['id']}/zone")).text
    assert "elsewhere" not in before
    for words in ("10 elsewhere.example", "127.0.0.1 other.example", "port 25 in", f"10 {service}."):
        assert words in shown, words
    assert f"{OURS}. 3600 IN MX 10 {service}." in zone


async def test_health_looks_at_every_record_and_the_daily_look_tells_when_it_turns(
    host: Server, dns: DnsServer
) -> None:
    domain = await verified(host, dns)
    path = f"/v1/domains/{domain['id']}/health"
    states = {check["name"]: check["state"] for check in (await host.api.get(path)).json()["data"]}
    assert (states["MX"], states["DKIM"], states["DMARC"]) == ("ok", "ok", "ok")
    assert (states["MTA-STS"], states["reverse name"], states["port 25 out"]) == ("missing", "missing", "ok")
    assert (await host.api.get("/.well-known/mta-sts.txt")).text.splitlines()[:2] == [
        "version: STSv1",
        "mode: testing",
    ]
    host.clock.turn(DAY)
    await look_at_some(host.resources)
    assert await told(host) == []
    people = {"kind": "email", "target": "ann@there.example", "on": ["domain_broken"]}
    await host.api.put("/v1/notifications", json={"targets": [people]})
    del dns.records[OURS, "MX"]
    host.clock.turn(DAY)
    assert await look_at_some(host.resources) == 1
    assert await host.resources.db.read(kinds_noticed) == ["domain_broken"]
    assert await look_at_some(host.resources) == 0, "once a day"
    (broken,) = await told(host)
    assert broken["domain"] == {"id": domain["id"], "domain": OURS, "problems": ["MX"]}
    assert (broken["event"], broken["message"]["id"], "deleted" in broken) == ("domain.broken", "", False)
    host.clock.turn(DAY)
    await look_at_some(host.resources)
    assert len(await told(host)) == 1, "told when it turns, and not every day"
    dns.servfail.add("*")
    host.clock.turn(DAY)
    await look_at_some(host.resources)
    assert len(await told(host)) == 1, "a DNS that is down mends nothing"
    dns.servfail.clear()
    publish(dns, domain)
    host.clock.turn(DAY)
    await look_at_some(host.resources)
    assert (await told(host))[-1]["event"] == "domain.mended"
    audit = (await host.api.get("/v1/audit", params={"limit": 100})).json()["data"]
    assert {"domain.broken", "domain.mended"} <= {entry["action"] for entry in audit}


def kinds_noticed(tx: Tx) -> list[str]:
    return [row["kind"] for row in tx.all("select kind from notifications")]


async def told(host: Server) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = (await host.api.get("/v1/events")).json()["data"]
    return [event for event in events if event["event"].startswith("domain.")]
