"""Domains: whoever proves one first has it, and each is signed with its owner's key."""

import pytest

from postroom.accounts import accounts, dkim_keys, domains
from postroom.accounts.dkim_keys import DkimKey
from postroom.accounts.domains import Domain
from postroom.accounts.scope import Scope
from postroom.clock import DAY
from postroom.errors import DomainTaken, InvalidDomain, NotFound, NothingToDo
from postroom.first_start import make_service_key
from postroom.mailbox import inboxes
from postroom.storage.database import Database
from tests.doubles import START
from tests.mail.keys import signing_key
from tests.stored import SERVICE

OURS = "mail.ours.example"


@pytest.fixture
async def owners(db: Database) -> list[str]:
    return [(await db.write(accounts.add, name, "free", START)).id for name in ("first", "second")]


async def claim(db: Database, account_id: str, name: str = OURS) -> Domain:
    return await db.write(domains.add, account_id, name, f"key of {account_id}".encode(), START)


@pytest.mark.sqlite_alone
async def test_two_may_claim_a_domain_and_the_first_to_prove_it_has_it(
    db: Database, owners: list[str]
) -> None:
    mine, theirs = await claim(db, owners[0]), await claim(db, owners[1])
    assert await db.read(domains.find_owner, OURS) is None
    verified = await db.write(domains.mark_verified, theirs, START + 1)
    assert verified.verified_at == START + 1
    assert await db.read(domains.find_owner, OURS) == owners[1]
    with pytest.raises(DomainTaken):
        await db.write(domains.mark_verified, mine, START + 2)
    for owner in owners:
        with pytest.raises(DomainTaken):
            await claim(db, owner)


@pytest.mark.sqlite_alone
async def test_an_account_claims_a_domain_once_and_sees_its_own_alone(
    db: Database, owners: list[str]
) -> None:
    mine = await claim(db, owners[0])
    with pytest.raises(DomainTaken, match="already"):
        await claim(db, owners[0])
    assert await db.read(domains.get, Scope(owners[0]), mine.id) == mine
    for account_id, domain_id in ((owners[1], mine.id), (owners[0], "dom_nonsense")):
        with pytest.raises(NotFound):
            await db.read(domains.get, Scope(account_id), domain_id)
    assert await db.read(domains.list_within, Scope(owners[0]), 10, 0) == ([mine], 1)
    assert await db.read(domains.list_within, Scope(owners[1]), 10, 0) == ([], 0)


@pytest.mark.sqlite_alone
async def test_an_inbox_needs_the_service_domain_or_a_proved_one(db: Database, owners: list[str]) -> None:
    mine = await claim(db, owners[0])
    assert await db.read(domains.require_usable, Scope(owners[0]), None, SERVICE) == SERVICE
    with pytest.raises(InvalidDomain):
        await db.read(domains.require_usable, Scope(owners[0]), OURS, SERVICE)
    assert not await db.read(domains.is_served, OURS, SERVICE)
    await db.write(domains.mark_verified, mine, START)
    assert await db.read(domains.require_usable, Scope(owners[0]), OURS.upper(), SERVICE) == OURS
    assert await db.read(domains.is_served, OURS, SERVICE)
    with pytest.raises(InvalidDomain):
        await db.read(domains.require_usable, Scope(owners[1]), OURS, SERVICE)


@pytest.mark.sqlite_alone
async def test_mail_is_signed_with_the_key_of_the_owner(db: Database, owners: list[str]) -> None:
    mine = await claim(db, owners[0])
    await claim(db, owners[1])
    await db.write(dkim_keys.add_first, domains.SERVICE, SERVICE, b"of the service", START)
    await db.write(dkim_keys.add_first, domains.SERVICE, SERVICE, b"never a second", START)
    assert await db.read(domains.signing_keys, OURS, SERVICE) == ()
    await db.write(domains.mark_verified, mine, START)
    found = [await db.read(domains.signing_keys, name, SERVICE) for name in (OURS, SERVICE)]
    assert [[key.private_key for key in keys] for keys in found] == [
        [f"key of {owners[0]}".encode()],
        [b"of the service"],
    ]


async def test_a_domain_in_use_stays_and_an_unused_one_goes_with_its_key(
    db: Database, owners: list[str]
) -> None:
    mine = await claim(db, owners[0])
    await db.write(domains.mark_verified, mine, START)
    await db.write(inboxes.add, owners[0], "hello", OURS, None, SERVICE, START)
    with pytest.raises(DomainTaken, match="Inboxes still use"):
        await db.write(domains.remove, Scope(owners[0]), mine.id)
    await db.write(lambda tx: tx.run("delete from inboxes"))
    await db.write(domains.remove, Scope(owners[0]), mine.id)
    assert await db.read(dkim_keys.list_of, owners[0], OURS) == []
    assert await db.read(domains.find_owner, OURS) is None


def test_only_mx_and_key_are_required_records() -> None:
    keys = [DkimKey("postroom", signing_key())]
    found = domains.records(OURS, SERVICE, keys, START)
    assert [(each.type, each.name) for each in found if each.is_required] == [
        ("MX", OURS),
        ("TXT", f"postroom._domainkey.{OURS}"),
    ]
    assert any(each.value == f"v=spf1 include:{SERVICE} ~all" for each in found)
    assert any(each.value == "v=spf1 mx a ~all" for each in domains.records(SERVICE, SERVICE, keys, START))


@pytest.mark.sqlite_alone
async def test_new_keys_take_over_when_their_records_are_found(db: Database, owners: list[str]) -> None:
    owner, pem = owners[0], signing_key()
    await db.write(domains.mark_verified, await claim(db, owner), START)
    await db.write(dkim_keys.remove_all, owner, OURS)
    await db.write(dkim_keys.add_first, owner, OURS, pem, START)

    async def states() -> dict[str, str]:
        return {key.selector: key.state for key in await db.read(dkim_keys.list_of, owner, OURS)}

    assert await states() == {"postroom": "active", "postroom-ed25519": "waiting"}
    assert await db.write(dkim_keys.activate, owner, OURS, ["postroom-ed25519", "unknown"], START) == [
        "postroom-ed25519"
    ]
    signing = await db.read(domains.signing_keys, OURS, SERVICE)
    assert [key.algorithm for key in signing] == ["rsa", "ed25519"]
    await db.write(dkim_keys.begin_rotation, owner, OURS, pem, START + 1000)
    assert await db.read(domains.signing_keys, OURS, SERVICE) == signing, "until the new ones are found"
    with pytest.raises(NothingToDo):
        await db.write(dkim_keys.begin_rotation, owner, OURS, pem, START + 2000)
    _, _, rsa, ed25519 = await states()
    await db.write(dkim_keys.activate, owner, OURS, [rsa], START + DAY)
    assert await states() == {
        "postroom": "retired",
        "postroom-ed25519": "active",
        rsa: "active",
        ed25519: "waiting",
    }
    keys = await db.read(dkim_keys.list_of, owner, OURS)
    assert keys[0].removable_at == START + 8 * DAY
    for moment, is_wanted in ((START + 8 * DAY - 1, True), (START + 8 * DAY, False)):
        records = domains.records(OURS, SERVICE, keys, moment)
        assert (f"postroom._domainkey.{OURS}" in [record.name for record in records]) is is_wanted
    assert [record.name for record in records if record.is_required] == [OURS, f"{rsa}._domainkey.{OURS}"]
    await db.write(dkim_keys.begin_rotation, owner, OURS, pem, START + 2 * DAY)
    assert ed25519 not in await states(), "a key that was never published is replaced"


@pytest.mark.sqlite_alone
async def test_new_keys_of_a_server_that_has_none_yet_sign_at_once(db: Database) -> None:
    owner = domains.SERVICE
    await db.write(dkim_keys.begin_rotation, owner, SERVICE, signing_key(), START)
    await make_service_key(db, SERVICE, START, signing_key)
    keys = await db.read(dkim_keys.list_of, owner, SERVICE)
    assert [(key.selector, key.state) for key in keys] == [
        ("postroom", "active"),
        ("postroom-ed25519", "waiting"),
    ]
