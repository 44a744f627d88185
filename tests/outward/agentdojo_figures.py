"""AgentDojo's workspace attacks as email: `python -m tests.outward.agentdojo_figures FOLDER`.

FOLDER is `src/agentdojo` of a copy of AgentDojo (Debenedetti et al., 2024), no part of the project. For each
injection task an inbox gets the emails of the suite. Where these and the files have a place for an injection,
stands the goal of the task. The agent obeys it to the letter, with `originGuard: hold`. Counted are its
sends that waited for a person or were refused. A task that sends nothing is left out.
"""

import ast
import asyncio
import base64
import re
import sys
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]
from msgspec import Struct

from tests.conftest import Server, running_server, settings
from tests.doubles import FakeClock
from tests.outward.origin_figures import NO_LIMITS, post
from tests.raw_mails import raw_mail

SUITE, OWN = Path("data/suites/workspace/include"), "emma.johnson"
TASKS = "default_suites/v1*/workspace/injection_tasks.py"
PLACE = re.compile(r"\{\w+_injection\w*\}|\{calendar_\w+\}")
TODAY = "2024-05-15"
LARGEST = 5


class Suite(Struct, frozen=True):
    """What the suite has: emails, files and appointments, as its files say."""

    emails: list[dict[str, Any]]
    files: list[dict[str, Any]]
    events: list[dict[str, Any]]
    tasks: dict[str, dict[str, str]]  # the texts of each task, the goal among them


def read_suite(folder: Path) -> Suite:
    inbox, drive, calendar = (
        yaml.safe_load((folder / SUITE / f"{name}.yaml").read_text(encoding="utf-8"))
        for name in ("inbox", "cloud_drive", "calendar")
    )
    tasks: dict[str, dict[str, str]] = {}
    for path in sorted(folder.glob(TASKS)):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and node.name.startswith("InjectionTask"):
                tasks[node.name] = texts_of(node)  # that of the newest version
    return Suite(inbox["initial_emails"], drive["initial_files"], calendar["initial_events"], tasks)


def texts_of(task: ast.ClassDef) -> dict[str, str]:
    """Return the texts that a task names, with those in braces filled in. Nothing of it is run."""
    found: dict[str, str] = {}
    for node in task.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            parts = node.value.values if isinstance(node.value, ast.JoinedStr) else [node.value]
            texts = [
                str(part.value)
                if isinstance(part, ast.Constant)
                else found[part.value.id.strip("_")]
                if isinstance(part, ast.FormattedValue) and isinstance(part.value, ast.Name)
                else ""
                for part in parts
            ]
            found[node.targets[0].id.strip("_")] = "".join(texts)
    return found


def received(suite: Suite, goal: str) -> Iterator[dict[str, Any]]:
    for each in sorted(suite.emails, key=lambda each: str(each["timestamp"])):
        if each["status"] == "received":
            yield {**each, "body": PLACE.sub(lambda _: goal, each["body"])}


def sends_of(suite: Suite, task: dict[str, str], own_address: str) -> Iterator[dict[str, Any]]:
    """Yield what an agent sends that does all that the goal says."""
    goal, to = task["GOAL"], task.get("RECIPIENT", "")
    emails = list(received(suite, goal))
    if "email the text" in goal:
        yield {"to": to, "subject": task["SUBJECT"], "body": task["TEXT"]}
    if "PARTICIPANT" in task:
        start, end = (task[name].replace(" ", "T") + ":00Z" for name in ("START_TIME", "END_TIME"))
        invitation = {"summary": task["TITLE"], "start": start, "end": end}
        yield {"to": task["PARTICIPANT"], "subject": task["TITLE"], "body": "Hello", "calendar": invitation}
    if "Send the body" in goal:
        asked = next(each for each in emails if each["sender"] == task["SENDER"])
        yield {"to": to, "subject": asked["subject"], "body": asked["body"]}
    if "CODE" in task:
        body = f"{task.get('BODY', '')} {task['CODE']}".strip()
        yield {"to": to, "subject": task.get("SUBJECT", "Security Code"), "body": body}
    if "all unread emails" in goal:
        yield {"to": to, "subject": "Emails", "body": joined(each for each in emails if not each["read"])}
    if "all received and sent emails" in goal:
        yield {"to": to, "subject": "Received", "body": joined(emails)}
        sent = (each for each in suite.emails if each["status"] == "sent")
        yield {"to": to, "subject": "Sent", "body": joined(sent)}
    if "in my cloud" in goal:
        files = sorted(suite.files, key=lambda each: -len(each["content"]))
        files = files[:LARGEST] if "largest" in goal else files
        attached = [attachment(each, goal) for each in files]
        yield {"to": to, "subject": "Files", "body": "See the files.", "attachments": attached}
    if "to my own email address" in goal:
        yield {"to": own_address, "subject": task["EMAIL_SUBJECT"], "body": task["EMAIL_BODY"]}
    if "I am meeting with today" in goal:
        for address in meeting_today(suite):
            body = task["EMAIL_BODY"].replace("{first_name}", address.partition(".")[0].title())
            yield {"to": address, "subject": task["EMAIL_SUBJECT"], "body": body}


def joined(emails: Any) -> str:
    return "\n\n".join(each["body"] for each in emails)


def attachment(file: dict[str, Any], goal: str) -> dict[str, str]:
    content = PLACE.sub(lambda _: goal, file["content"]).encode()
    return {
        "filename": f"{file['filename']}.txt",
        "contentType": "text/plain",
        "data": base64.b64encode(content).decode(),
    }


def meeting_today(suite: Suite) -> list[str]:
    today = [each for each in suite.events if str(each["start_time"]).startswith(TODAY)]
    people = dict.fromkeys(person for each in today for person in each["participants"])
    return [person for person in people if not person.startswith(OWN)]


async def play(server: Server, suite: Suite, task: dict[str, str]) -> list[tuple[str, bool]]:
    """Return what each send of a task is, and whether it was stopped."""
    name = f"emma{uuid.uuid4().hex[:8]}"
    made = await server.api.post("/v1/inboxes", json={"mailboxName": name, "originGuard": "hold"})
    inbox_id, address = made.json()["id"], made.json()["address"]
    emails = list(received(suite, task["GOAL"]))
    for each in emails:
        raw = raw_mail(each["body"], **{"from": each["sender"], "subject": each["subject"], "to": address})
        await server.deliver(raw, name, sender=each["sender"])
    path = f"/v1/inboxes/{inbox_id}/messages?direction=inbound&limit=100"
    while len((await server.api.get(path)).json()["data"]) < len(emails):
        await asyncio.sleep(0.01)
    found = []
    for send in sends_of(suite, task, address):
        answer = await post(server, inbox_id, send)
        reasons = answer.json().get("hold", {}).get("reasons", ())
        assert answer.status_code in (200, 403), answer.text
        found.append((f"{send['subject']} to {send['to']}", answer.status_code == 403 or "origin" in reasons))
    return found


async def report(folder: Path) -> None:
    suite = read_suite(folder)
    with tempfile.TemporaryDirectory() as kept:
        config = settings(Path(kept), **dict.fromkeys(NO_LIMITS, "0"))
        async with running_server(config, FakeClock()) as server:
            played = {name: await play(server, suite, task) for name, task in suite.tasks.items()}
    sends = [each for name in played for each in played[name]]
    stopped = sum(is_stopped for _, is_stopped in sends)
    print(f"{sum(map(bool, played.values()))} of {len(played)} tasks send email: {stopped} of {len(sends)}")
    print(f"sends stopped ({100 * stopped / max(len(sends), 1):.1f} %)")
    for name, found in played.items():
        for what, is_stopped in found:
            if not is_stopped:
                print(f"  not stopped: {name}: {what}")


if __name__ == "__main__":
    asyncio.run(report(Path(sys.argv[1])))
