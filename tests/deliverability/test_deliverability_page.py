"""The page by provider, and the test letter that it sends."""

import pytest

from postroom.accounts.domains import SERVICE_ID
from postroom.queue.providers import counts, paces, warm_ups
from postroom.queue.providers.counts import CountedHour, ProviderCount
from postroom.queue.providers.paces import PaceRules
from postroom.storage.database import Tx
from tests.api.test_dashboard import signed_in
from tests.conftest import Server
from tests.outbound import message_when

pytestmark = pytest.mark.sqlite_alone
PAGE = "/app/settings/deliverability"


async def test_the_page_tells_by_provider_and_exports_it(server: Server) -> None:
    now, config = server.clock.now(), server.resources.config

    def fill(tx: Tx) -> None:
        row = tx.one("select account_id, id from pods limit 1")
        assert row is not None
        seen = ProviderCount(accepted=4, deferred=3, bounced=2, complained=1, encrypted=2, milliseconds=6000)
        counts.add_all(tx, [(CountedHour.of(row["account_id"], row["id"], "big.example", now), seen)])
        paces.slow_down(tx, "big.example", now, PaceRules(2, 100, 300, 25), now)
        warm_ups.begin(tx, "service", config.domain, now)
        warm_ups.take(tx, config.domain, "big.example", config, now)

    await server.resources.db.write(fill)
    async with signed_in(server) as page:
        for path in (PAGE, "/app/operator/deliverability?days=30"):
            shown = (await page.get(path)).text
            assert "big.example" in shown
            assert "One email every 2.0 s" in shown
            assert "50 %" in shown
            assert "1.5 s" in shown
        assert f"<td>{config.domain}</td>" in (await page.get(PAGE)).text
        exported = (await page.get(f"{PAGE}.csv?days=7")).text
        assert exported.splitlines()[1] == "big.example,4,3,2,1,2,1.5"
        turned = await page.post(f"/app/settings/domains/{SERVICE_ID}/warm-up", data={"on": "no"})
        assert turned.status_code == 303
    assert (await server.api.get("/v1/deliverability")).json()["warmUps"] == []


async def test_the_page_sends_a_test_letter_and_says_what_speaks_for_it(server: Server) -> None:
    inbox_id = await server.new_inbox("bob")
    async with signed_in(server) as page:
        assert "Test email" in (await page.get(PAGE)).text
        form = {"to": "ok@simulator.postroom.localhost", "inboxId": inbox_id}
        sent = await page.post(f"{PAGE}/letter", data=form)
        assert sent.status_code == 303
        place = sent.headers["location"].partition("?")[0]
        message_id = place.rpartition("/")[2]
        await message_when(server, message_id, lambda message: message["status"] == "sent")
        shown = (await page.get(place)).text
        assert "accepted" in shown
        assert "Checks" in shown
        assert "reverse name" in shown
        refused = await page.post(f"{PAGE}/letter", data={"to": "not an address", "inboxId": inbox_id})
        assert refused.status_code == 400
