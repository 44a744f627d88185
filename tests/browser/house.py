"""A server in a thread of its own, for tests that drive a browser from outside its loop."""

import asyncio
import contextlib
import smtplib
import threading
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import httpx2
import uvloop

from postroom.accounts import sessions
from postroom.assembly import Postroom, serving
from postroom.config import Config
from tests.conftest import settings
from tests.doubles import FakeClock
from tests.mail.keys import signing_key
from tests.plain_transport import trusting

T = TypeVar("T")


class House:
    """The running server, and what a test does to it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, postroom: Postroom, token: str, clock: Any) -> None:
        self._loop = loop
        self._postroom = postroom
        self.token = token
        self.clock = clock
        self.base_url = postroom.resources.config.base_url
        self.smtp_port = postroom.smtp_port
        self.api = httpx2.Client(
            base_url=self.base_url,
            headers={"Authorization": f"Bearer {token}"},
            timeout=120,
            verify=trusting(),
        )

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(120)

    def write(self, fn: Callable[..., T], *values: Any) -> T:
        return self.run(self._postroom.resources.db.write(fn, *values))

    def new_inbox(self, name: str, display_name: str | None = None) -> str:
        body = {"mailboxName": name, "displayName": display_name}
        answer = self.api.post("/v1/inboxes", json=body)
        assert answer.status_code == 201, answer.text
        inbox_id: str = answer.json()["id"]
        return inbox_id

    def deliver(self, raw: bytes, *names: str, sender: str = "alice@example.com") -> None:
        with smtplib.SMTP("127.0.0.1", self.smtp_port) as smtp:
            smtp.sendmail(sender, [f"{name}@postroom.localhost" for name in names], raw)

    def login_link(self) -> str:
        token, account = sessions.new_token(), self.api.get("/v1/me").json()["accountId"]
        self.write(sessions.add_link, account, True, token, self.clock.now())
        return f"{self.base_url}/app/sign-in?link={token}"


@contextlib.contextmanager
def house(folder: Path, clock: Any = None, config: Config | None = None) -> Iterator[House]:
    loop = uvloop.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    stack = contextlib.AsyncExitStack()
    clock = clock or FakeClock()

    async def start() -> Postroom:
        return await stack.enter_async_context(serving(config or settings(folder), clock, None, signing_key))

    try:
        postroom = asyncio.run_coroutine_threadsafe(start(), loop).result(120)
        opened = House(loop, postroom, postroom.first_token or "", clock)
        try:
            yield opened
        finally:
            opened.api.close()
            asyncio.run_coroutine_threadsafe(stack.aclose(), loop).result(120)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
