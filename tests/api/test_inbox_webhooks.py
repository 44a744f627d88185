"""The webhook of one inbox: tested and rotated by itself."""

import pytest

from tests.api.endpoint import running_endpoint
from tests.api.test_pods import told
from tests.conftest import Server

pytestmark = pytest.mark.sqlite_alone


async def test_an_inboxs_own_webhook_is_tested_and_rotated(server: Server) -> None:
    inbox_id = await server.new_inbox("own")
    path = f"/v1/inboxes/{inbox_id}"
    for action in ("test", "rotate-secret"):
        assert told(await server.api.post(f"{path}/webhook/{action}")) == (400, "no_webhook_url")
    async with running_endpoint() as endpoint:
        made = (await server.api.patch(path, json={"webhookUrl": endpoint.url})).json()
        tested = await server.api.post(f"{path}/webhook/test")
        assert (tested.json()["ok"], tested.json()["status"]) == (True, 200)
        rotated = (await server.api.post(f"{path}/webhook/rotate-secret")).json()
        assert rotated["webhookSecret"].startswith("whsec_")
        assert rotated["webhookSecret"] != made["webhookSecret"]
        endpoint.answers.append(b"500 Broken")
        assert told(await server.api.post(f"{path}/webhook/test")) == (502, "webhook_failed")
    audit = (await server.api.get("/v1/audit")).text
    assert "webhook.secret_rotated" in audit
    assert rotated["webhookSecret"] not in audit
    assert made["webhookSecret"] not in audit
