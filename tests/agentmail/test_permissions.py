"""Permissions of a key one by one: it may do these alone, and only where they are known."""

from typing import Any

import pytest
from agentmail import AsyncAgentMail
from agentmail.api_keys.types import ApiKeyPermissions, CreateBearerApiKeyRequest
from agentmail.core.api_error import ApiError
from agentmail.errors import NotFoundError
from agentmail.websockets.types import Subscribe
from websockets.exceptions import InvalidStatus

from postroom.accounts.permissions import ALL
from postroom.web.agentmail.routes import ROUTES
from postroom.web.agentmail.setup.keys import ours_of
from tests.agentmail.clients import ONCE, agentmail
from tests.agentmail.test_mail import api as api  # the fixture
from tests.agentmail.test_mail import mail, new, received
from tests.conftest import Server


async def key_with(api: AsyncAgentMail, **words: bool) -> Any:
    given = ApiKeyPermissions(**words)
    request = CreateBearerApiKeyRequest(name="few", permissions=given)
    return await api.api_keys.create(request=request, request_options=ONCE)


async def refusal(asked: Any) -> tuple[int | None, str]:
    with pytest.raises(ApiError) as refused:
        await asked
    return refused.value.status_code, getattr(refused.value.body, "code", None) or refused.value.body["code"]


@pytest.mark.sqlite_alone
async def test_a_key_may_do_what_it_was_given_and_nothing_else(server: Server, api: AsyncAgentMail) -> None:
    inbox = (await new(api, username="support")).inbox_id
    await received(server, mail("One", message_id="<one@there.example>"))
    key = await key_with(api, message_read=True, message_update=True, api_key_create=True, inbox_delete=False)
    given = {word for word, is_given in key.permissions.dict().items() if is_given}
    assert given == {"message_read", "message_update", "api_key_create"}
    async with agentmail(server, key.api_key) as few:
        assert (await few.inboxes.messages.list(inbox)).count == 1
        await few.inboxes.messages.update(inbox, "<one@there.example>", add_labels=["mine"])
        for asked in (
            few.inboxes.list(request_options=ONCE),
            few.inboxes.messages.send(inbox, to="a@there.example", text="x", request_options=ONCE),
            few.inboxes.messages.delete(inbox, "<one@there.example>", request_options=ONCE),
            few.inboxes.drafts.create(inbox, subject="x", request_options=ONCE),
            key_with(few, message_send=True),
        ):
            assert await refusal(asked) == (403, "missing_permission")
        child = await few.api_keys.create(request=CreateBearerApiKeyRequest(name="same"))
        assert child.permissions == key.permissions
        fewer = await api.api_keys.update(
            child.api_key_id, permissions=ApiKeyPermissions(message_read=True), request_options=ONCE
        )
        assert [word for word, is_given in fewer.permissions.dict().items() if is_given] == ["message_read"]
        more = api.api_keys.update(
            child.api_key_id, permissions=ApiKeyPermissions(message_delete=True), request_options=ONCE
        )
        assert await refusal(more) == (400, "validation_error")
    async with server.client(key.api_key) as elsewhere:
        assert (await elsewhere.get("/v1/inboxes")).status_code == 401
    assert await refusal(key_with(api, calendar_read=True)) == (400, "validation_error")


@pytest.mark.sqlite_alone
async def test_what_a_key_may_not_see_is_not_there(server: Server, api: AsyncAgentMail) -> None:
    inbox = (await new(api, username="support")).inbox_id
    await received(server, mail("Kept"), mail("Thrown", message_id="<thrown@there.example>"))
    await api.inboxes.messages.update(inbox, "<thrown@there.example>", add_labels=["trash"])
    thread = (await api.inboxes.messages.get(inbox, "<thrown@there.example>")).thread_id
    few, all_of_it = (
        await key_with(api, message_read=True, draft_create=True),
        await key_with(api, message_read=True, label_trash_read=True),
    )
    async with agentmail(server, few.api_key) as client:
        listed = await client.inboxes.messages.list(inbox, include_trash=True)
        assert [message.subject for message in listed.messages] == ["Kept"]
        assert (await client.threads.list(include_trash=True)).count == 1
        batch = await client.inboxes.messages.batch_get(inbox, message_ids=["<thrown@there.example>"])
        assert batch.count == 0
        log = (await client.inboxes.events.list(inbox)).events
        assert [each.label for each in log] == ["unread"]
        with pytest.raises(NotFoundError):
            await client.inboxes.messages.get(inbox, "<thrown@there.example>", request_options=ONCE)
        with pytest.raises(NotFoundError):
            await client.threads.get(thread, request_options=ONCE)
        for related in ({"in_reply_to": "<thrown@there.example>"}, {"forward_of": "<thrown@there.example>"}):
            with pytest.raises(NotFoundError):
                await client.inboxes.drafts.create(inbox, text="Hi", request_options=ONCE, **related)
    async with agentmail(server, all_of_it.api_key) as client:
        assert (await client.inboxes.messages.list(inbox, include_trash=True)).count == 2
        log = (await client.inboxes.events.list(inbox)).events
        assert sorted(each.label for each in log) == ["trash", "unread", "unread"]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the package itself
@pytest.mark.sqlite_alone
async def test_the_stream_is_for_keys_that_read_messages(server: Server, api: AsyncAgentMail) -> None:
    await new(api, username="support")
    reading, writing = await key_with(api, message_read=True), await key_with(api, inbox_read=True)
    async with (
        agentmail(server, reading.api_key) as client,
        client.websockets.connect() as socket,
    ):
        await socket.send_subscribe(Subscribe())
        subscribed: Any = await socket.recv()
        assert subscribed.type == "subscribed"
    async with agentmail(server, writing.api_key) as client:
        with pytest.raises((ApiError, InvalidStatus), match="403"):
            async with client.websockets.connect():
                pass


def test_every_route_asks_for_a_permission_that_the_package_knows() -> None:
    known = set(ApiKeyPermissions.model_fields) | {""}
    assert {route.word for route in ROUTES} <= known
    assert {route.name for route in ROUTES if not route.word} == {"GET /v0/organizations", "GET /v0/auth/me"}
    assert {ours_of(word) for word in known} == {*ALL, None} - {"approve"}
