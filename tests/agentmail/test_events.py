"""Events in the words of the package: its WebSocket client, and webhooks signed as Svix does."""

import asyncio
import base64
import hashlib
import hmac
import json
import queue
import threading
from typing import Any

import pytest
from agentmail import AgentMail, AsyncAgentMail
from agentmail.core.api_error import ApiError
from agentmail.websockets.types import Subscribe
from websockets.exceptions import InvalidStatus

from tests.agentmail.clients import agentmail_without_async
from tests.agentmail.test_mail import api as api  # the fixture
from tests.agentmail.test_mail import mail, new, received
from tests.api.endpoint import running_endpoint
from tests.conftest import Server


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the package itself
@pytest.mark.sqlite_alone
async def test_the_stream_tells_what_is_asked_for_and_nothing_else(
    server: Server, api: AsyncAgentMail
) -> None:
    inbox = (await new(api, username="support")).inbox_id
    other = (await new(api, username="other")).inbox_id
    heard: queue.Queue[Any] = queue.Queue()
    done = threading.Event()

    def listen(socket_api: AgentMail) -> None:
        with socket_api.websockets.connect() as socket:
            socket.send_subscribe(Subscribe(inbox_ids=["nobody@postroom.localhost"]))
            heard.put(socket.recv())
            socket.send_subscribe(Subscribe(inbox_ids=[inbox]))
            for _ in range(4):
                heard.put(socket.recv())
            done.wait(60)

    async def hear() -> Any:
        return await asyncio.to_thread(heard.get, True, 60)

    with agentmail_without_async(server) as socket_api:
        listening = asyncio.create_task(asyncio.to_thread(listen, socket_api))
        assert (await hear()).type == "error"
        subscribed = await hear()
        assert (subscribed.type, subscribed.inbox_ids) == ("subscribed", [inbox])
        await received(server, mail("Elsewhere"), name="other")
        await received(server, mail("Here"))
        event = await hear()
        assert (event.event_type, event.message.subject) == ("message.received", "Here")
        assert (event.message.inbox_id, event.thread.message_count) == (inbox, 1)
        sent = await api.inboxes.messages.send(inbox, to=other, subject="Out", text="x")
        both = [await hear(), await hear()]
        assert [each.event_type for each in both] == ["message.sent", "message.delivered"]
        assert both[0].send.message_id == both[1].delivery.message_id == sent.message_id
        assert both[0].event_id != both[1].event_id
        done.set()
        await listening

    def knock(stranger: AgentMail) -> None:
        with pytest.raises((ApiError, InvalidStatus), match="401"), stranger.websockets.connect():
            pass

    with agentmail_without_async(server, "pr_no") as stranger:
        await asyncio.to_thread(knock, stranger)


@pytest.mark.sqlite_alone
async def test_webhooks_are_signed_and_told_in_these_words(server: Server, api: AsyncAgentMail) -> None:
    inbox = (await new(api, username="support")).inbox_id
    other = (await new(api, username="other")).inbox_id
    async with running_endpoint() as endpoint:
        hook = await api.webhooks.create(
            url=endpoint.url,
            event_types=["message.received", "message.sent"],
            inbox_ids=[inbox],
            client_id="w1",
            headers={"X-Own": "7"},
        )
        again = await api.webhooks.create(url=endpoint.url, event_types=["message.sent"], client_id="w1")
        assert (again.webhook_id, again.secret) == (hook.webhook_id, hook.secret)
        assert (hook.inbox_ids, hook.inbox_id) == ([inbox], inbox)
        assert [each.webhook_id for each in (await api.inboxes.webhooks.list(inbox)).webhooks] == [
            hook.webhook_id
        ]
        await received(server, mail("Elsewhere"), name="other")
        await received(server, mail("Here"))
        await endpoint.wait_for(1)
        headers, body = endpoint.requests[0]
        check_signature(hook.secret, headers, body)
        event = json.loads(body)
        assert (event["event_type"], event["message"]["subject"]) == ("message.received", "Here")
        assert headers["x-own"] == "7"
        await api.inboxes.messages.send(inbox, to=other, subject="Out", text="x")
        await endpoint.wait_for(2)
        assert json.loads(endpoint.requests[1][1])["event_type"] == "message.sent"
    names = await api.webhooks.get_headers(hook.webhook_id)
    assert names.header_names == ["X-Own"]
    await api.webhooks.update_headers(hook.webhook_id, headers={"X-New": "8"}, remove_headers=["x-own"])
    assert (await api.webhooks.get_headers(hook.webhook_id)).header_names == ["X-New"]
    changed = await api.webhooks.update(hook.webhook_id, event_types=["message.bounced"], enabled=False)
    assert (changed.event_types, changed.enabled) == (["message.bounced"], False)
    await api.webhooks.delete(hook.webhook_id)
    assert (await api.webhooks.list()).webhooks == []


def check_signature(secret: str, headers: Any, body: bytes) -> None:
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{headers['svix-id']}.{headers['svix-timestamp']}.".encode() + body
    expected = base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
    assert headers["svix-signature"] == f"v1,{expected}"
