"""The first moments of a new server, whose signing key is not made yet: nothing leaves unsigned."""

import threading
from pathlib import Path

from postroom.assembly import serving
from postroom.outward.notices import system_emails
from postroom.storage.database import Tx
from tests.conftest import api_client, settings
from tests.couriers.smtp_peer import SmtpPeer
from tests.mail.keys import signing_key
from tests.outbound import PATIENCE_SECONDS
from tests.waiting import until


async def test_letters_of_the_server_wait_for_its_first_key(tmp_path: Path, peer: SmtpPeer) -> None:
    is_due, may_be_made = threading.Event(), threading.Event()

    def make_key_late() -> bytes:
        is_due.set()
        may_be_made.wait(PATIENCE_SECONDS)
        return signing_key()

    config = settings(tmp_path, OUTBOUND=f"smtp://127.0.0.1:{peer.port}")
    async with serving(config, make_key=make_key_late) as postroom:
        assert postroom.first_token is not None
        resources = postroom.resources
        await until(is_due.is_set, "the key is asked for")

        def write_email(tx: Tx) -> None:
            account = tx.one("select id from accounts")
            assert account is not None
            system_emails.add(
                tx, account["id"], None, "ann@there.example", "Hello", "A link", resources.now()
            )

        await resources.db.write(write_email)
        async with api_client(resources.config.base_url, postroom.first_token) as api:
            for _ in range(20):  # time for a letter that does not wait
                assert (await api.get("/v1/me")).is_success
        may_be_made.set()
        await until(lambda: len(peer.mails) == 1, "the letter left")
    assert peer.mails[0].raw.startswith(b"DKIM-Signature:")
