"""Takes the examples of the reference, requests and answers, from a run of docs/api.md and its pages.

What differs from run to run (ids, moments, secrets, sizes) is replaced, so that two runs give the same.
"""

import json
import re
import sys
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from postroom.web.routes import ROUTES
from postroom.web.routing import Router
from tests.recording_proxy import Exchange, recording
from tests.test_docs import API, ROOT, blocks, desk, has_curl
from tools.generate.description import load

PLACE = ROOT / "tools" / "generate" / "examples.json"
GUIDE = [block for page in API for block in blocks(page, "sh")]

MOMENT, DAY = "2026-11-14T10:05:00.000Z", "2026-11-14"
TEXTS = (
    (r"/(uploads|downloads)/[\w-]{43}", r"/\1/…"),
    (r"/calendars/[\w-]{43}\.ics", "/calendars/….ics"),
    (r"\b[0-9a-f]{32}@postroom", "9f86d081884c7d65@postroom"),
    (r"/inbound/[\w-]+", "/inbound/…"),  # first: a token can have in it what looks like a key or an id
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", MOMENT),
    (r"^\d{4}-\d\d-\d\d$", DAY),
    (r"\b([a-z]{3,4})_[0-9a-z]{16,}", r"\1_4fz8k2m7q1x9"),
    (r"\bpr_[\w-]+", "pr_…"),
    (r"<[^<>@\s]+@", "<20261114100500.1@"),
    (r"\bp=[A-Za-z0-9+/=]{40,}", "p=MIIBIjANBgkq…"),
    (r"\b[0-9a-f]{64}\b", "9f86d081884c7d65…"),
    (r"\?(expires|signature|token)=\S+", "?expires=1794651000&signature=9f86d081884c7d65…"),
    (r"127\.0\.0\.1:\d+", "127.0.0.1:8025"),
    (r"postroom-[0-9a-f]{8,}", "postroom-1f0c"),
)
AWAITED = "Invoice 7"
BY_NAME = {
    "last4": "x7Qd",
    "tokenPrefix": "pr_Ab3k",
    "secret": "whsec…",
    "webhookSecret": "whsec…",
    "participationStatus": "accepted",
    "signature": "Yl8r…",
    "publicKey": "qoKN9V…",
    "hash": "9f86d081884c7d65…",
    "previousHash": "3b5d5c3712955042…",
    "sha256": "9f86d081884c7d65…",
    "contentHash": "2c26b46b68ffc68f…",
    "invitationUrl": "http://127.0.0.1:8025/app/sign-in?invitation=…",
}
NUMBERS = {
    "sequence": 12,
    "count": 1,
    "milliseconds": 12,
    "storedBytes": 20480,
    "used": 3,
    "waiting": 0,
    "restarts": 0,
    "received": 12,
    "sent": 9,
    "failed": 1,
    "held": 1,
}
# What the DNS says differs from machine to machine.
# Of a job that may not have begun yet, or have counted more or less: what it was at its end once.
ERASED = {
    "id": "job_4fz8k2m7q1x9",
    "kind": "contact.erase",
    "state": "done",
    "done": 87,
    "total": 87,
    "result": {
        "auditEntries": 2,
        "calendarEvents": 0,
        "contacts": 1,
        "drafts": 0,
        "events": 7,
        "files": 0,
        "kept": 0,
        "messages": 3,
        "suppressions": 0,
    },
    "createdAt": "2026-11-14T10:05:00.000Z",
    "finishedAt": "2026-11-14T10:05:00.000Z",
}
CHECK_OF_MX = {
    "name": "MX",
    "state": "missing",
    "wanted": "10 postroom.localhost.",
    "found": "",
    "why": "The MX record says where email for the domain goes: without it no email comes here.",
    "paste": "mail.example.com. 3600 IN MX 10 postroom.localhost.",
}


# Until the invited inbox has read the cancellation: before, its time is taken, and not free once more.
UNTIL_CANCELLED = (
    'curl -fsS -H "Authorization: Bearer $KEY" "http://127.0.0.1:{port}/v1/events'
    '?event_types=calendar.cancelled&inbox_ids=$DESK&wait=60" | grep -q calendar.cancelled'
)


def record(folder: Path) -> dict[str, Any]:
    """By operation, the request and the answer of a run of the guide."""
    with (
        desk(folder, has_curl()) as reader,
        recording(int(reader.ports["http"])) as (port, exchanges),
    ):
        script = "\n".join([*GUIDE, UNTIL_CANCELLED.format(port=reader.ports["http"])])
        done = reader.run(script.replace("URL=http://127.0.0.1:8025", f"URL=http://127.0.0.1:{port}"))
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        done = reader.run("\n".join(block for block in GUIDE if not only_reads(block)))
        assert done.returncode == 0, f"once more, as a reader may: {done.stdout}\n{done.stderr}"
    return examples(exchanges)


def only_reads(block: str) -> bool:
    """Requests of one line each, without a method or a body, whose answers nothing else uses."""
    return all(re.fullmatch(r'api "?\$URL/[^ ]*', line) for line in block.splitlines())


def examples(exchanges: list[Exchange]) -> dict[str, Any]:
    router, ids = Router(ROUTES), {(each.method, each.path): each.id for each in load().operations}
    found: dict[str, list[tuple[Exchange, dict[str, str]]]] = {}
    for exchange in exchanges:
        route = router.find(exchange.method, urlsplit(exchange.target).path)
        if isinstance(route, tuple) and (exchange.method, route[0].path) in ids:
            found.setdefault(ids[exchange.method, route[0].path], []).append((exchange, route[1]))
    return {name: shown(*chosen(found[name])) for name in sorted(found)}


def chosen(all_of_it: list[tuple[Exchange, dict[str, str]]]) -> tuple[Exchange, dict[str, str]]:
    """Of what was read, the last that found something; of what was changed, the first that was done."""
    done = [each for each in all_of_it if 200 <= each[0].status < 300] or all_of_it
    if done[0][0].method != "GET":
        return done[0]
    full = [each for each in done if b'"data":[]' not in each[0].answer]
    return (full or done)[-1]


def shown(exchange: Exchange, names: dict[str, str]) -> dict[str, Any]:
    is_done = 200 <= exchange.status < 300 and bool(exchange.answer)
    is_shown = is_done and "json" in exchange.answer_type and b'"openapi"' not in exchange.answer
    return {
        "path": {name: settled(value) for name, value in names.items()},
        "query": {name: settled(value) for name, value in parse_qsl(urlsplit(exchange.target).query)},
        "body": settled(exchange.body),
        "status": exchange.status,
        "answer": settled(shortened(json.loads(exchange.answer))) if is_shown else None,
    }


def shortened(answer: Any) -> Any:
    """A list by one item; of mail that may still be on its way, by the one that was waited for."""
    if isinstance(answer, dict) and isinstance(answer.get("data"), list):
        awaited = [each for each in answer["data"] if AWAITED in json.dumps(each)]
        data = (awaited or answer["data"])[:1]
        return {**answer, "data": data, **({"total": len(data)} if "total" in answer else {})}
    return answer


def settled(value: Any, name: str = "") -> Any:
    if isinstance(value, dict) and value.get("name") == "MX":
        return CHECK_OF_MX
    if isinstance(value, dict) and value.get("kind") == "contact.erase":
        return ERASED
    if isinstance(value, dict):
        return {settled_text(key): settled(each, key) for key, each in value.items()}
    if isinstance(value, list):
        return [settled(each, name) for each in value]
    if name == "status" and value == "tentative":  # until an email about the event has left
        return "confirmed"
    if name == "lastUsedAt":  # written down a while after the use
        return MOMENT
    if isinstance(value, str):
        return BY_NAME.get(name) or settled_text(value)
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return NUMBERS.get(name, value) if is_number else value


def settled_text(text: str) -> str:
    for pattern, fixed in TEXTS:
        text = re.sub(pattern, fixed, text)
    return text


def written(found: dict[str, Any]) -> str:
    return json.dumps(found, ensure_ascii=False, indent=1) + "\n"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        PLACE.write_text(written(record(Path(folder))))
    sys.exit(0)
