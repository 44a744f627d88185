"""Everything at once, each tried until it is answered: mails, sends, holds, posts, a mailbox elsewhere, a
stream, a mail program."""

import asyncio
import contextlib
import imaplib
import json
import random
import re
import smtplib
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx2
from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

from tests.connections import provider_posts
from tests.connections.dovecot import PASSWORD, Dovecot
from tests.mixed_kills.server import HOST, TOKEN, KilledServer
from tests.plain_transport import http_client
from tests.raw_mails import raw_mail, raw_mail_with_files

DOMAIN = "postroom.localhost"
MAILBOX_USER = "agent@example.com"
WORD = "weekly"  # in every mail that comes in, for the search
LARGE = "x" * 300_000  # of a mail: more than a row holds
LONG_TEXT = WORD + " y" * 40_000
PATIENCE_SECONDS = 60.0
LOST = (OSError, smtplib.SMTPException, imaplib.IMAP4.error, httpx2.TransportError, WebSocketException)
_UID = re.compile(rb"UID (\d+)")
_MESSAGE_ID = re.compile(rb"<([^>]+)>")


@dataclass
class Known:
    """What was answered, and what that promises."""

    mails: set[str] = field(default_factory=set)  # subjects that are there once
    in_doubt: set[str] = field(default_factory=set)  # there once, or not at all
    sends: dict[str, str] = field(default_factory=dict)  # message by key
    held: dict[str, str] = field(default_factory=dict)  # the same, of those that wait for a person
    events: list[str] = field(default_factory=list)  # as a stream showed them, each once
    flagged: set[int] = field(default_factory=set)  # numbers of mails in the folder of a mail program
    names: dict[int, bytes] = field(default_factory=dict)  # Message-ID by number
    folder_is: bytes = b""  # the number of the folder itself


class Load:
    """Runs from `start` to `finish`, whatever happens to the server meanwhile."""

    def __init__(self, server: KilledServer, dovecot: Dovecot, webhook_url: str, seed: int) -> None:
        self.known = Known()
        self._server, self._dovecot, self._webhook_url = server, dovecot, webhook_url
        self._dice = random.Random(seed)
        self._is_over = False
        self._numbers = 0
        self._inbox_ids: dict[str, str] = {}
        self._post_url = ""
        self._agent = ""
        headers = {"Authorization": f"Bearer {TOKEN}"}
        self.api = http_client(server.base_url, headers, PATIENCE_SECONDS)

    async def furnish(self) -> None:
        """Inboxes, a webhook, a key for the agent, and two ways for mail from elsewhere."""
        for name in ("hello", "sender", "posted", "mailbox"):
            self._inbox_ids[name] = (await self._make("/v1/inboxes", mailboxName=name))["id"]
        held = await self._make("/v1/inboxes", mailboxName="held", approval={"when": ["always"]})
        self._inbox_ids["held"] = held["id"]
        self._agent = (await self._make("/v1/api-keys", name="an agent"))["token"]
        answer = await self.api.put("/v1/webhook", json={"url": self._webhook_url})
        assert answer.status_code == 200, answer.text
        self._post_url = (await self._make("/v1/connections", kind="http", provider="raw"))["url"]
        await self._make(
            "/v1/connections",
            kind="imap",
            host=HOST,
            port=self._dovecot.port,
            username=MAILBOX_USER,
            password=PASSWORD,
            inboxId=self._inbox_ids["mailbox"],
            since="2020-01-01",
        )

    async def _make(self, path: str, **body: object) -> dict[str, Any]:
        answer = await self.api.post(path, json=body)
        assert answer.status_code == 201, answer.text
        made: dict[str, Any] = answer.json()
        return made

    async def start(self) -> None:
        """A stream resumes behind an event, so the load begins with one."""
        first = asyncio.create_task(self._hear(most=1))
        while not first.done():
            await self._hand_in()
            await asyncio.sleep(0.05)
        await first
        self._tasks = [
            asyncio.create_task(self._repeat(client, pause))
            for client, pause in (
                (self._hand_in, 0.05),
                (self._hand_in, 0.05),
                (self._send, 0.1),
                (self._send_held, 0.2),
                (self._approve_all, 0.2),
                (self._post, 0.1),
                (self._put_elsewhere, 0.4),
                (self._read_by_imap, 0.3),
            )
        ]
        self._listening = asyncio.create_task(self._listen())

    async def _repeat(self, client: Callable[[], Awaitable[None]], pause_seconds: float) -> None:
        while not self._is_over:
            await client()
            await asyncio.sleep(pause_seconds)

    def require_nobody_failed(self) -> None:
        """Who expects something else than what was answered stops: that is told at once."""
        for task in (*self._tasks, self._listening):
            if task.done():
                task.result()

    async def finish(self) -> None:
        """Everybody gets the answer to what was begun; the stream and the person go on."""
        self._is_over = True
        await asyncio.gather(*self._tasks)

    async def close(self) -> None:
        self._is_over = True
        tasks = [*getattr(self, "_tasks", []), *([self._listening] if hasattr(self, "_listening") else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.api.aclose()

    def _next(self, kind: str) -> str:
        self._numbers += 1
        return f"{kind}-{self._numbers}"

    async def _until_answered(self, attempt: Callable[[], Awaitable[bool]]) -> None:
        while True:
            try:
                if await attempt():
                    return
            except LOST:
                pass
            await asyncio.sleep(0.05)

    # Mail in

    async def _hand_in(self) -> None:
        """As a mail server does: again, until it hears 250. A mail without a name goes only once."""
        subject = self._next("mail")
        kind = self._dice.randrange(10)
        name = f"<{subject}@x>"
        if kind == 0:
            await self._hand_in_once(subject, raw_mail(WORD, subject=subject))
            return
        if kind == 1:
            file = ("a.csv", "text/csv", b"a,b")
            raw = raw_mail_with_files(file, text=WORD, subject=subject, message_id=name)
        else:
            text = f"{WORD} {LARGE if kind == 2 else 'numbers'}"
            raw = raw_mail(text, subject=subject, message_id=name)
        await self._until_answered(lambda: asyncio.to_thread(self._talk, raw))
        self.known.mails.add(subject)

    async def _hand_in_once(self, subject: str, raw: bytes) -> None:
        self.known.in_doubt.add(subject)
        try:
            is_taken = await asyncio.to_thread(self._talk, raw)
        except LOST:
            return
        if is_taken:
            self.known.mails.add(subject)

    def _talk(self, raw: bytes) -> bool:
        with smtplib.SMTP(HOST, self._server.smtp_port, timeout=PATIENCE_SECONDS) as smtp:
            return smtp.sendmail("a@example.com", [f"hello@{DOMAIN}"], raw) == {}

    async def _post(self) -> None:
        """As a mail service does: again, until it hears 200."""
        subject = self._next("post")
        raw = raw_mail(WORD, subject=subject, message_id=f"<{subject}@x>")
        post = provider_posts.raw(body=raw, recipient=f"posted@{DOMAIN}")

        async def attempt() -> bool:
            answer = await self.api.post(self._post_url, content=post.body, headers=post.headers)
            assert answer.status_code in (200, 503), answer.text
            return answer.status_code == 200

        await self._until_answered(attempt)
        self.known.mails.add(subject)

    async def _put_elsewhere(self) -> None:
        subject = self._next("elsewhere")
        await self._dovecot.put(MAILBOX_USER, raw_mail(WORD, subject=subject))
        self.known.mails.add(subject)

    # Mail out

    async def _send(self) -> None:
        key = self._next("send")
        inside = [f"hello@{DOMAIN}"] if self._dice.random() < 0.2 else []
        to = [f"{key}@there.example", *inside]
        await self._send_until_accepted("sender", key, to, self.known.sends)
        if inside:
            self.known.mails.add(key)

    async def _send_held(self) -> None:
        key = self._next("held")
        await self._send_until_accepted("held", key, [f"{key}@there.example"], self.known.held)

    async def _send_until_accepted(self, inbox: str, key: str, to: list[str], noted: dict[str, str]) -> None:
        """As an agent should: the same key again for as long as there is no answer."""
        body = {"to": to, "subject": key, "body": LONG_TEXT if self._dice.random() < 0.1 else WORD}

        headers = {"Authorization": f"Bearer {self._agent}", "Idempotency-Key": key}

        async def attempt() -> bool:
            path = f"/v1/inboxes/{self._inbox_ids[inbox]}/send"
            answer = await self.api.post(path, json=body, headers=headers)
            assert answer.status_code in (200, 503), answer.text
            if answer.status_code == 200:
                message_id = answer.json()["messageId"]
                assert noted.setdefault(key, message_id) == message_id, "a key gave two answers"
            return answer.status_code == 200

        await self._until_answered(attempt)
        if self._dice.random() < 0.2:
            await self._until_answered(attempt)  # a repetition changes nothing

    async def _approve_all(self) -> None:
        await self._until_answered(self._approve_what_waits)

    async def _approve_what_waits(self) -> bool:
        page = await self.api.get("/v1/approvals")
        for each in page.json().get("data", []):
            seen = {"contentHash": each["hold"]["contentHash"]}
            path = f"/v1/messages/{each['message']['id']}/approve"
            answer = await self.api.post(path, json=seen)
            assert answer.status_code in (200, 409, 503), answer.text
        return True

    async def approve_the_rest(self) -> None:
        await self._until_answered(self._approve_what_waits)

    # Reading

    async def _listen(self) -> None:
        """Resumes behind the last event it saw, also after it left by itself."""
        while True:
            try:
                async with asyncio.timeout(self._dice.uniform(0.1, 3.0)):
                    await self._hear()
            except (*LOST, TimeoutError):
                await asyncio.sleep(0.05)

    async def _hear(self, most: int | None = None) -> None:
        url = f"ws://{HOST}:{self._server.http_port}/v1/ws?token={TOKEN}"
        events = self.known.events
        async with connect(
            url, proxy=None, open_timeout=PATIENCE_SECONDS, close_timeout=1, max_size=None
        ) as stream:
            resume = {"last_event_id": events[-1]} if events else {}
            await stream.send(json.dumps({"type": "subscribe", **resume}))
            while most is None or len(events) < most:
                heard = json.loads(await stream.recv())
                if "event_id" in heard:
                    assert heard["event_id"] not in events, "an event came twice on a stream that resumed"
                    events.append(heard["event_id"])

    async def _read_by_imap(self) -> None:
        async def attempt() -> bool:
            await asyncio.to_thread(self._look_by_imap)
            return True

        await self._until_answered(attempt)

    def _look_by_imap(self) -> None:
        """What has a number keeps it, and a flag that was answered stays."""
        with self._mail_program() as client:
            fetched = client.uid("FETCH", "1:*", "(UID BODY.PEEK[HEADER.FIELDS (MESSAGE-ID)])")[1]
            for part in fetched:
                if isinstance(part, tuple):
                    self._note_number(part[0], part[1])
            if unflagged := sorted(self.known.names.keys() - self.known.flagged):
                uid = self._dice.choice(unflagged)
                if client.uid("STORE", str(uid), "+FLAGS", "(\\Flagged)")[0] == "OK":
                    self.known.flagged.add(uid)

    @contextlib.contextmanager
    def _mail_program(self) -> Iterator[imaplib.IMAP4]:
        """Its socket is closed however the server ends; the library says goodbye first, and fails at that."""
        client = imaplib.IMAP4(HOST, self._server.imap_port, timeout=PATIENCE_SECONDS)
        try:
            self._select(client)
            yield client
        finally:
            client.shutdown()

    def _select(self, client: imaplib.IMAP4) -> None:
        client.login(f"hello@{DOMAIN}", TOKEN)
        if client.select("INBOX")[0] != "OK":  # it may be asked again, as whatever else was not answered
            raise imaplib.IMAP4.error("the folder cannot be opened now")
        number = client.response("UIDVALIDITY")[1][0]
        assert isinstance(number, bytes)
        assert self.known.folder_is in (b"", number), "the folder was numbered anew"
        self.known.folder_is = number

    def _note_number(self, head: bytes, content: bytes) -> None:
        found, name = _UID.search(head), _MESSAGE_ID.search(content)
        assert found is not None
        known = self.known.names.setdefault(int(found[1]), name[1] if name else b"")
        assert known == (name[1] if name else b""), "a number belongs to another mail now"

    def flags_by_imap(self) -> dict[int, bytes]:
        with self._mail_program() as client:
            lines = client.uid("FETCH", "1:*", "(UID FLAGS)")[1]
            found = [(_UID.search(line), line) for line in lines if isinstance(line, bytes)]
            return {int(uid[1]): line for uid, line in found if uid is not None}
