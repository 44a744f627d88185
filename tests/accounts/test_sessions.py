"""Sessions of people: each sees those of the own pod, however many others there are."""

from postroom.accounts import keys, pods, sessions
from postroom.accounts.reach import Reach
from postroom.accounts.sessions import SESSIONS_LISTED, SignInOrigin, SignInProof
from postroom.storage.database import Database, Tx
from tests.doubles import START
from tests.stored import make_inbox


async def test_a_pod_sees_its_sessions_behind_a_crowd_of_others(db: Database) -> None:
    def fill(tx: Tx) -> tuple[str, str, str]:
        account_id = make_inbox(tx).account_id
        pod = pods.add(tx, account_id, None, "tenant", START)
        whole = keys.add(tx, account_id, None, "whole", keys.new_token(), START)
        narrow = keys.add(tx, account_id, None, "narrow", keys.new_token(), START, pod_id=pod.id)
        own = add(tx, account_id, narrow.id, START)
        for number in range(SESSIONS_LISTED):
            add(tx, account_id, whole.id, START + 1 + number)
        return account_id, pod.id, own

    def add(tx: Tx, account_id: str, key_id: str, now: int) -> str:
        proof = SignInProof(account_id, key_id, is_operator=False, by_key=True)
        return sessions.add(tx, proof, "x", SignInOrigin("192.0.2.1", "y"), sessions.new_token(), now).id

    account_id, pod_id, own = await db.write(fill)
    listed = await db.read(sessions.list_within, Reach(account_id, pod_id), START)
    assert [session.id for session in listed] == [own]
    everybody = await db.read(sessions.list_within, Reach(account_id), START)
    assert len(everybody) == SESSIONS_LISTED
