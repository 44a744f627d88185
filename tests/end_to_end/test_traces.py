"""One trace from a request to the other server's 250, and from a received email to its webhook."""

import asyncio
import logging
import sys
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from postroom import log, traces, tracing
from postroom.config import ConfigError
from postroom_client import AsyncClient
from tests.api.endpoint import Endpoint, running_endpoint
from tests.client.live import API_KEY, LiveServer, running_server
from tests.client.test_mcp_tasks import ask
from tests.conftest import api_client, settings
from tests.couriers.smtp_peer import SmtpPeer
from tests.raw_mails import raw_mail
from tests.samples import samples
from tests.waiting import until

pytestmark = pytest.mark.sqlite_alone

ASKED, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
BY_AGENT = "a" * 32
Json = dict[str, Any]


class Spans:
    """What a collector got, by trace and name."""

    def __init__(self, requests: list[tuple[dict[str, str], bytes]]) -> None:
        self.all = [
            span
            for _, body in requests
            for of_resource in ExportTraceServiceRequest.FromString(body).resource_spans
            for of_scope in of_resource.scope_spans
            for span in of_scope.spans
        ]

    def named(self, trace_id: str) -> dict[str, Any]:
        return {span.name: span for span in self.all if span.trace_id.hex() == trace_id}


def value(span: Any, key: str) -> Any:
    [found] = [each.value for each in span.attributes if each.key == key]
    return getattr(found, found.WhichOneof("value"))


@asynccontextmanager
async def traced_server(
    folder: Path, collector: Endpoint, peer: SmtpPeer
) -> AsyncIterator[tuple[LiveServer, Any]]:
    server = running_server(
        folder,
        POSTROOM_OTEL=collector.url.removesuffix("/hook"),
        POSTROOM_OUTBOUND=f"smtp://127.0.0.1:{peer.port}",
    )
    live = await asyncio.to_thread(server.__enter__)
    try:
        async with api_client(live.base_url, API_KEY) as api:
            yield live, api
    finally:
        await asyncio.to_thread(server.__exit__, None, None, None)


async def held(api: Any, inbox_id: str, **headers: str) -> Json:
    order = {"to": "carol@there.example", "subject": "Offer", "body": "Hello"}
    made = await api.post(
        f"/v1/inboxes/{inbox_id}/send", json=order, headers={"Idempotency-Key": str(uuid.uuid4()), **headers}
    )
    message: Json = (await api.get(f"/v1/messages/{made.json()['id']}")).json()
    return message


async def newest(api: Any) -> str:
    event_id: str = (await api.get("/v1/events?order=desc&limit=1")).json()["data"][0]["event_id"]
    return event_id


async def test_one_trace_goes_from_a_request_to_the_250(tmp_path: Path) -> None:
    async with running_endpoint() as collector, running_endpoint() as hook, SmtpPeer() as peer:
        async with traced_server(tmp_path, collector, peer) as (live, api):
            rules = {"when": ["always"]}
            body = {"mailboxName": "bob", "approval": rules, "webhookUrl": hook.url}
            inbox_id = (await api.post("/v1/inboxes", json=body)).json()["id"]
            key = {"inboxId": inbox_id, "permissions": ["read", "send"]}
            agent = (await api.post("/v1/api-keys", json=key)).json()["token"]
            async with api_client(live.base_url, agent) as sender:
                message = await held(sender, inbox_id, traceparent=f"00-{ASKED}-{SPAN}-01")
            assert message["traceId"] == ASKED
            approved = {"contentHash": message["hold"]["contentHash"]}
            assert (await api.post(f"/v1/messages/{message['id']}/approve", json=approved)).is_success
            await until(lambda: peer.mails)
            [decided] = [
                each
                for each in (await api.get("/v1/audit")).json()["data"]
                if each["target"] == message["id"]
            ]
            assert decided["traceId"] == ASKED

            params = {"to": "carol@there.example", "subject": "s", "body": "b", "inbox_id": inbox_id}
            call = {"name": "send_email", "arguments": params}
            told = await ask(api, "tools/call", call, {}, traceparent=f"00-{BY_AGENT}-{SPAN}-01")
            by_agent = told["result"]["structuredContent"]["message_id"]
            assert (await api.get(f"/v1/messages/{by_agent}")).json()["traceId"] == BY_AGENT

            async with AsyncClient(API_KEY, live.base_url) as listener:
                stream = listener.stream(event_types=["message.received"], last_event_id=await newest(api))
                await asyncio.to_thread(live.deliver, raw_mail("Hello"), "bob@postroom.localhost")
                streamed = await anext(stream)
                await stream.aclose()
            await hook.wait_for(1)
            [received] = (await api.get(f"/v1/inboxes/{inbox_id}/messages?direction=inbound")).json()["data"]
            [event] = (await api.get("/v1/events?event_types=message.received")).json()["data"]
        spans = Spans(collector.requests)

    sent = spans.named(ASKED)
    assert set(sent) == {"create mail", "hold", "queue there.example", "send there.example"}
    root, attempt = sent["create mail"], sent["send there.example"]
    assert root.parent_span_id.hex() == SPAN
    assert {span.parent_span_id for name, span in sent.items() if name != "create mail"} == {root.span_id}
    assert (value(attempt, "smtp.response.status_code"), value(attempt, "postroom.attempt")) == (250, 1)
    assert value(sent["hold"], "postroom.hold.reasons") == "always"
    assert root.start_time_unix_nano <= attempt.start_time_unix_nano <= attempt.end_time_unix_nano

    of_agent = spans.named(BY_AGENT)
    tool = of_agent["tools/call send_email"]
    assert (tool.parent_span_id.hex(), value(tool, "gen_ai.tool.name")) == (SPAN, "send_email")
    assert of_agent["create mail"].parent_span_id == tool.span_id

    inward = spans.named(received["traceId"])
    post = inward["POST webhook"]
    assert inward["receive mail"].parent_span_id == b""
    assert post.parent_span_id == inward["receive mail"].span_id
    assert streamed.message is not None
    assert streamed.message.traceparent == event["message"]["traceparent"]
    headers, _ = hook.requests[0]
    assert headers["traceparent"] == traces.write(received["traceId"], post.span_id.hex())
    assert event["message"]["traceparent"] == traces.of_message(received["traceId"], "", is_inbound=True)


def test_without_the_extra_the_setting_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.resources", None)
    with pytest.raises(ConfigError, match="pip install opentelemetry-sdk"):
        tracing.start(settings(tmp_path, OTEL="http://127.0.0.1:4318"))
    for wrong in ("collector", "ftp://there", "http://"):
        with pytest.raises(ConfigError, match="POSTROOM_OTEL"):
            settings(tmp_path, OTEL=wrong)


def test_a_collector_that_is_away_costs_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []
    monkeypatch.setattr(log.get(), "seldom", lambda message, **more: lines.append(message))
    handler = tracing._InOurLog(logging.ERROR)
    handler.handle(logging.LogRecord("opentelemetry", logging.ERROR, "", 1, "Failed %s", ("x",), None))
    assert lines == ["spans could not be sent"]


@samples(
    "header",
    [
        "",
        "nonsense",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{ASKED}-{'0' * 16}-01",
        f"ff-{ASKED}-{SPAN}-01",
        f"00-{ASKED}-{SPAN}-01-more",
        f"00-{ASKED.upper()}-{SPAN}-01",
        f"01-{ASKED}-{SPAN}-01-{'x' * 500}",
    ],
)
def test_an_invalid_traceparent_is_as_none(header: str) -> None:
    assert traces.read(header) is None


def test_a_traceparent_of_a_later_version_is_read() -> None:
    assert traces.read(f"01-{ASKED}-{SPAN}-01-more") == (ASKED, SPAN)
