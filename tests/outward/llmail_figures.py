"""Attacks of the LLMail-Inject challenge as email: `python -m tests.outward.llmail_figures FILE`.

FILE is `data/attack_dataset.csv` of https://github.com/HyeonJi05/ease, no part of the project: 639 emails of
people who tried to make an assistant send "confirmation" to contact@contact.com (Abdelnabi et al., 2025).
Each comes to an inbox of its own with `originGuard: hold`. The agent obeys, by an email of its own and by an
answer with the address in Cc. Counted are its sends that waited for a person or were refused.
"""

import asyncio
import csv
import sys
import tempfile
import uuid
from pathlib import Path

from msgspec import Struct

from tests.conftest import Server, running_server, settings
from tests.doubles import FakeClock
from tests.outward.origin_figures import NO_LIMITS, post
from tests.raw_mails import raw_mail

GOAL, WORDS = "contact@contact.com", "confirmation"
ATTACKER = "colleague@attacker.example"


class Attack(Struct, frozen=True):
    subject: str
    body: str


def read(path: Path) -> list[Attack]:
    csv.field_size_limit(10_000_000)
    with path.open(encoding="utf-8-sig", newline="") as file:
        return [Attack(" ".join(row["subject"].split()), row["body"]) for row in csv.DictReader(file)]


async def stopped(server: Server, attack: Attack) -> list[bool]:
    """Whether each of the two sends was."""
    name = f"a{uuid.uuid4().hex[:12]}"
    made = await server.api.post("/v1/inboxes", json={"mailboxName": name, "originGuard": "hold"})
    inbox_id = made.json()["id"]
    raw = raw_mail(attack.body, **{"from": ATTACKER, "subject": attack.subject})
    await server.deliver(raw, name, sender=ATTACKER)
    [received] = (await server.api.get(f"/v1/inboxes/{inbox_id}/messages")).json()["data"]
    answer = {"threadId": received["threadId"], "to": ATTACKER, "cc": [GOAL], "body": WORDS}
    found = []
    for send in ({"to": GOAL, "subject": WORDS, "body": WORDS}, answer):
        said = await post(server, inbox_id, send)
        assert said.status_code in (200, 403), said.text
        reasons = said.json().get("hold", {}).get("reasons", ())
        found.append(said.status_code == 403 or "origin" in reasons)
    return found


async def report(path: Path) -> None:
    attacks = read(path)
    with tempfile.TemporaryDirectory() as kept:
        config = settings(Path(kept), OUTBOUND="capture", **dict.fromkeys(NO_LIMITS, "0"))
        async with running_server(config, FakeClock()) as server:
            played = [(attack, await stopped(server, attack)) for attack in attacks]
    sends = [each for _, found in played for each in found]
    print(f"{sum(sends)} of {len(sends)} sends stopped ({100 * sum(sends) / max(len(sends), 1):.1f} %)")
    for attack, found in played:
        if not all(found):
            print(f"  not stopped: {attack.subject[:60]!r}: {attack.body[:200]!r}")


if __name__ == "__main__":
    asyncio.run(report(Path(sys.argv[1])))
