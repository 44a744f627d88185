"""Who uses an address is known at once after an upgrade."""

from pathlib import Path

import pytest

from postroom.external_mailboxes import address_uses
from postroom.storage.database import Tx
from postroom.storage.migrate import migrate
from tests.doubles import START
from tests.storage.test_migrate import open_session, postgres_url

__all__ = ["postgres_url"]

BEFORE = 139


def rules(reviewer: str) -> str:
    return f'{{"when":["always"],"expiresHours":72,"reviewers":["{reviewer}"],"approvals":1}}'


def fill(tx: Tx) -> None:
    made = "insert into accounts (id, name, plan, created_at, approval) values ('acc_1', 'x', 'free', 1, :it)"
    tx.run(made, it=rules("boss@x.example"))
    tx.run(
        "insert into pods (id, account_id, is_default, created_at, approval)"
        " values ('pod_1', 'acc_1', 1, 1, :it)",
        it=rules("pod+a@x.example"),
    )
    tx.run("insert into pods (id, account_id, is_default, created_at) values ('pod_2', 'acc_1', 0, 1)")
    tx.run(
        "insert into inboxes (id, account_id, pod_id, address, domain, created_at, approval)"
        " values ('inb_1', 'acc_1', 'pod_1', 'a@here.example', 'here.example', 1, :it)",
        it=rules("+odd@x.example"),
    )
    tx.run(
        "insert into users (id, account_id, email, name, role, pod_ids, state, key_id, created_at)"
        " values ('usr_1', 'acc_1', 'ann+work@x.example', '', 'owner', '', 'active', 'key_1', 1)"
    )
    tx.run(
        "insert into notification_targets (id, account_id, position, kind, target, wanted)"
        " values ('ntf_1', 'acc_1', 0, 'email', 'ops@x.example', 'held'),"
        " ('ntf_2', 'acc_1', 1, 'ntfy', 'https://n.example/a@b', 'held')"
    )
    tx.run(
        "insert into connections (id, account_id, kind, provider, state, created_at, settings, secrets)"
        " values ('con_1', 'acc_1', 'imap', '', 'live', 1, :settings, '{}'),"
        " ('con_2', 'acc_1', 'http', 'raw', 'live', 1, '{}', '{}')",
        settings='{"address":"desk@x.example","username":"Desk"}',
    )


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_users_reviewers_targets_and_mailboxes_from_before_are_found(
    engine: str, postgres_url: str, tmp_path: Path
) -> None:
    session = open_session(postgres_url if engine == "postgres" else "", tmp_path)
    migrate(session, START, BEFORE)
    session.begin()
    fill(session.tx)
    session.commit()
    migrate(session, START)
    session.begin()
    rows = session.tx.all("select address, owner_id, account_id from address_uses order by address")
    assert [(row["address"], row["owner_id"]) for row in rows] == [
        ("+odd@x.example", "inb_1"),
        ("ann@x.example", "usr_1"),
        ("boss@x.example", "acc_1"),
        ("desk@x.example", "con_1"),
        ("ops@x.example", "acc_1"),
        ("pod@x.example", "pod_1"),
    ]
    assert {row["account_id"] for row in rows} == {"acc_1"}
    assert address_uses.is_of_inbox(session.tx, "acc_1", "a@here.example")
    session.rollback()
    session.close()
