"""What the origin guard stops: `python -m tests.outward.origin_figures [FOLDER[=OWN,…] …]`.

Written attacks come as emails to an agent that obeys each of them, on a server with `originGuard: hold`:
counted are the sends that waited for a person. Each folder has emails of a public mailing list, one a file.
They come to one inbox in the order of their dates, and each answer among them is sent from there first, as
its author wrote it, without the footers that servers added. Counted are the answers that carry what came from
somebody else. What their author, or somebody of the author's company, wrote first in this list is their
own, as the inbox of an author would know. If a list writes in the names of its authors, Reply-To names the
author. No test needs a folder, and none is part of the project: `list_emails` fills one.
POSTROOM_TEST_ORIGIN_ANSWERS says how many answers of a folder are sent.
"""

import asyncio
import os
import re
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from email.utils import getaddresses, parsedate_to_datetime
from pathlib import Path
from typing import Any

from msgspec import Struct

from postroom.clock import MINUTE
from postroom_mail.mime.parse import ParsedMail, parse_mail
from postroom_mail.reading.reply import reply_text
from postroom_mail.screening import values
from tests.conftest import Server, running_server, settings
from tests.doubles import FakeClock
from tests.outward.origin_attacks import ATTACKS, Attack
from tests.raw_mails import raw_mail

MOST_ANSWERS = int(os.environ.get("POSTROOM_TEST_ORIGIN_ANSWERS", "300"))  # of a folder
TYPICAL_BYTES = 5_000
FOOTER = re.compile(
    r"\n_{20,}\n.*mailing list\b.*(?:\n.*){0,4}\Z|\n\s*https?://\S+/listinfo/\S+\s*\Z"
    r"|\n_{20,}\n(?:Do You Yahoo|Yahoo! |Everything you'll ever need)(?:.*\n){0,5}.*\Z"
    r"|\n-- ?\n.*: \S+@\S+\n\S+/listinfo/\S+ for \(un\)subscription.*(?:\n.*){0,2}\Z"
    r"|\n--\nTo unsubscribe from this list: send the line (?:.*\n){0,3}.*\Z"
    r"|\n-{14} next part -{14}\n(?:.*\n){0,9}?.*\bscrubbed\b(?:.*\n){0,8}.*\Z"
    r"|\n-{70,}\n(?:.*\n){1,6}https?://p\.sf\.net/\S+\s*\Z",
    re.IGNORECASE,
)
PROVIDERS = re.compile(
    r"@(?:.*\.)?(?:aol|gmail|gmx|hotmail|live|mail|msn|outlook|yahoo)\.[a-z.]+\Z|@126\.com\Z"
)
NO_LIMITS = ("SENDS_PER_MINUTE", "SENDS_PER_DAY", "COLD_PER_DAY", "INBOXES_PER_DAY")


class ListMail(Struct, frozen=True):
    """An email of a mailing list, with the moment that its date names."""

    raw: bytes
    mail: ParsedMail
    moment: float


async def stopped(server: Server, attack: Attack) -> bool:
    """Whether the send of the agent that obeys waits for a person, or was refused."""
    name = f"a{uuid.uuid4().hex[:12]}"
    made = await server.api.post("/v1/inboxes", json={"mailboxName": name, "originGuard": "hold"})
    inbox_id = made.json()["id"]
    for sender, subject, text in attack.emails:
        await server.deliver(raw_mail(text, **{"from": sender, "subject": subject}), name, sender=sender)
    thread = await thread_of(server, inbox_id, attack.emails[-1][1]) if attack.is_reply else None
    answer = await post(server, inbox_id, {**attack.send, **({"threadId": thread} if thread else {})})
    return answer.status_code == 403 or "origin" in answer.json().get("hold", {}).get("reasons", ())


async def thread_of(server: Server, inbox_id: str, subject: str) -> str | None:
    listed = (await server.api.get(f"/v1/inboxes/{inbox_id}/messages?direction=inbound")).json()["data"]
    return next((str(each["threadId"]) for each in listed if each["subject"] == subject), None)


async def post(server: Server, inbox_id: str, body: dict[str, Any]) -> Any:
    server.clock.turn(MINUTE)
    headers = {"Idempotency-Key": str(uuid.uuid4())}
    return await server.api.post(f"/v1/inboxes/{inbox_id}/send", json=body, headers=headers)


async def attacks(server: Server) -> Iterator[str]:
    missed = [attack for attack in ATTACKS if not await stopped(server, attack)]
    part = 100 * (1 - len(missed) / len(ATTACKS))
    return iter(
        [f"attacks stopped: {len(ATTACKS) - len(missed)} of {len(ATTACKS)} ({part:.1f} %)"]
        + [f"  missed: {attack.name}" for attack in missed]
    )


def read_folder(folder: str) -> list[ListMail]:
    found = []
    for path in sorted(Path(folder).rglob("*")):
        if path.is_file():
            raw = path.read_bytes()
            mail = parse_mail(raw)
            date = next(
                (line[5:] for line in raw.split(b"\n")[:200] if line.lower().startswith(b"date:")), b""
            )
            try:
                moment = parsedate_to_datetime(date.decode("ascii", "ignore").strip()).timestamp()
            except (ValueError, TypeError):
                continue
            found.append(ListMail(raw, mail, moment))
    return sorted(found, key=lambda each: each.moment)


async def answers(server: Server, folder: str, trusted: list[str]) -> Iterator[str]:
    await server.api.patch("/v1/account", json={"trustedValues": trusted})
    name = f"a{uuid.uuid4().hex[:12]}"
    inbox_id = (await server.api.post("/v1/inboxes", json={"mailboxName": name})).json()["id"]
    known: dict[str, str] = {}
    kinds: dict[str, int] = {}
    first_writers: dict[str, str] = {}  # by key of a value
    authors: dict[str, str] = {}  # by id of a message
    people: dict[str, dict[str, str]] = {}  # of a thread: their addresses, by what is before the @
    sent, carrying = 0, []
    for each in read_folder(folder):
        parents = (*each.mail.in_reply_to, *reversed(each.mail.references))
        parent = next((known[parent] for parent in parents if parent in known), None)
        if parent is not None and sent < MOST_ANSWERS:
            answer = await post(server, inbox_id, to_answer(each.mail, parent, people[parent]))
            if answer.status_code == 200:
                sent += 1
                shown = (await server.api.get(f"/v1/messages/{answer.json()['id']}")).json()
                own = own_of(each.mail, first_writers)
                author = company_of(author_of(each.mail))
                foreign = [
                    one
                    for one in shown.get("origins", ())
                    if (one["kind"], one["value"]) not in own and authors.get(one["messageId"]) != author
                ]
                if foreign:
                    carrying.append({**shown, "origins": foreign})
                    for origin in foreign:
                        kinds[origin["kind"]] = kinds.get(origin["kind"], 0) + 1
                await server.api.delete(f"/v1/messages/{answer.json()['id']}")
        if sent >= MOST_ANSWERS:
            break
        for key in values.carried_by([each.mail.body_text]):
            first_writers.setdefault(key, author_of(each.mail))
        await server.deliver(each.raw, name, sender=each.mail.from_address or "nobody@example.org")
        await until_examined(server)
        listed = (await server.api.get(f"/v1/inboxes/{inbox_id}/messages?direction=inbound&limit=1")).json()
        if listed["data"] and listed["data"][0]["rfcMessageId"] == each.mail.message_id:
            known[each.mail.message_id] = thread = listed["data"][0]["threadId"]
            people.setdefault(thread, {}).update(names_of(each.mail))
            authors[listed["data"][0]["id"]] = company_of(author_of(each.mail))
    part = 100 * len(carrying) / max(sent, 1)
    lines = [f"{folder}: {len(carrying)} of {sent} answers carry a value ({part:.1f} %), by kind {kinds}"]
    return iter(lines + [f"  {each['headerTo'][:60]}: {each['origins']}" for each in carrying[:20]])


def own_of(mail: ParsedMail, first_writers: dict[str, str]) -> set[tuple[str, str]]:
    """Return kind and form of the values that an author or a colleague wrote before anybody else."""
    found = values.carried_by([written_by(mail)]).values()
    own = company_of(author_of(mail))
    shown = {(each.kind, each.shown) for each in found if company_of(first_writers.get(each.key, "")) == own}
    addresses = (each for each in found if each.kind == values.ADDRESS)
    signed = {each.shown for each in addresses if each.shown.lower() in (author_of(mail), mail.from_address)}
    return shown | {(values.ADDRESS, each) for each in signed}


def author_of(mail: ParsedMail) -> str:
    """Return who wrote an email; a list that writes in its own name says it in Reply-To."""
    people = [each.address for each in (*mail.to, *mail.cc)]
    is_of_list = mail.from_address.lower() in map(str.lower, people)
    return mail.reply_to[0].address.lower() if is_of_list and mail.reply_to else mail.from_address


def company_of(address: str) -> str:
    """Return the domain of an address, or all of it at a provider of mailboxes for everybody."""
    return address if PROVIDERS.search(address) else address.rpartition("@")[2]


def written_by(mail: ParsedMail) -> str:
    text = mail.body_text.replace("\r\n", "\n")
    for _ in range(3):  # of a provider, of a list behind it, and of an advertisement between them
        text = FOOTER.sub("", text.rstrip())
    return reply_text(text, mail.subject) or "Yes."


async def until_examined(server: Server) -> None:
    """Who wrote is known once an email has been examined."""
    db = server.resources.db
    while (await db.read(lambda tx: tx.one("select 1 as found from examinations limit 1"))) is not None:
        await asyncio.sleep(0.01)


def names_of(mail: ParsedMail) -> dict[str, str]:
    named = [mail.from_address, *(each.address for each in (*mail.to, *mail.cc, *mail.reply_to))]
    return {each.rpartition("@")[0].lower(): each for each in named}


def to_answer(mail: ParsedMail, thread: str, there: dict[str, str]) -> dict[str, Any]:
    """Archives wrote another domain into some addresses of lists and people: it is that of the thread."""
    people = [address for _, address in getaddresses([mail.header_to, ", ".join(map(str, mail.cc))])]
    people = [each for each in people if "@" in each and each.isascii() and " " not in each][:40]
    people = [there.get(each.rpartition("@")[0].lower(), each) for each in people]
    return {
        "to": people[0] if people else "list@example.org",
        "cc": people[1:],
        "threadId": thread,
        "body": written_by(mail),
    }


def named(folder: str) -> tuple[str, list[str]]:
    """Return a folder, and the domains and addresses that are the own ones of whoever kept the archive."""
    path, _, trusted = folder.partition("=")
    return path, trusted.split(",") if trusted else []


def cost(folders: Sequence[str]) -> Iterator[str]:
    """CPU time to find the values of an email of typical size."""
    read = [each.mail.body_text for folder in folders for each in read_folder(named(folder)[0])]
    texts = [text for text in read if TYPICAL_BYTES * 0.8 < len(text) < TYPICAL_BYTES * 1.2][:200]
    for name, read_values in (("received", values.held_by), ("sent", carried)) if texts else ():
        started = time.process_time()
        found = sum(len(read_values(text)) for text in texts)
        each = (time.process_time() - started) / len(texts)
        yield f"{name}: {len(texts)} texts of 5 kB: {each * 1000:.3f} ms, {found / len(texts):.1f} values"


def carried(text: str) -> values.Found:
    return values.carried_by([text])


async def report(folders: Sequence[str]) -> None:
    with tempfile.TemporaryDirectory() as kept:
        config = settings(Path(kept), OUTBOUND="capture", **dict.fromkeys(NO_LIMITS, "0"))
        async with running_server(config, FakeClock()) as server:
            for line in await attacks(server):
                print(line)
            for folder in folders:
                for line in await answers(server, *named(folder)):
                    print(line)
    for line in cost(folders):
        print(line)


if __name__ == "__main__":
    asyncio.run(report(sys.argv[1:]))
