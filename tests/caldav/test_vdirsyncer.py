"""vdirsyncer, as Debian has it, keeps a folder of files in step with a calendar."""

import asyncio
import os
import subprocess
from pathlib import Path

import pytest

from tests.api.test_calendars import agenda, create
from tests.caldav.client import event
from tests.conftest import Server
from tests.programs import path_of

WEEK = ("2026-11-16T00:00:00Z", "2026-11-23T00:00:00Z")
SECONDS = 120
SETTINGS = """[general]
status_path = "{home}/status/"

[pair agenda]
a = "here"
b = "there"
collections = ["from b"]

[storage here]
type = "filesystem"
path = "{home}/files/"
fileext = ".ics"

[storage there]
type = "caldav"
url = "{url}/caldav/"
username = "bob@postroom.localhost"
password = "{key}"
"""


async def vdirsyncer(home: Path, *arguments: str, given: str = "") -> None:
    command = [path_of("vdirsyncer"), "-c", str(home / "config"), *arguments]
    environment = {"HOME": str(home), "PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
    done = await asyncio.to_thread(
        subprocess.run, command, env=environment, input=given.encode(), capture_output=True, timeout=SECONDS
    )
    assert done.returncode == 0, (done.stdout + done.stderr).decode(errors="replace")


def files_of(folder: Path) -> dict[str, Path]:
    """The files that it downloaded or has uploaded, by their summary."""
    found = {}
    for path in folder.glob("*.ics"):
        lines = path.read_text().splitlines()
        found[next(line.removeprefix("SUMMARY:") for line in lines if line.startswith("SUMMARY:"))] = path
    return found


@pytest.mark.sqlite_alone
@pytest.mark.needs("vdirsyncer")
async def test_vdirsyncer_finds_the_calendar_and_carries_changes_both_ways(
    server: Server, tmp_path: Path
) -> None:
    inbox_id = await server.new_inbox("bob")
    made = await create(server, inboxId=inbox_id, summary="Made here", timeZone="Europe/Berlin")
    (tmp_path / "config").write_text(SETTINGS.format(home=tmp_path, url=server.base_url, key=server.token))
    await vdirsyncer(tmp_path, "discover", given="y\n")
    (folder,) = (tmp_path / "files").iterdir()
    assert folder.name == made["calendarId"]
    (folder / "a.ics").write_text(event("a", "Planning"))
    (folder / "b.ics").write_text(event("b", "Lunch", "RRULE:FREQ=DAILY;COUNT=2\n"))
    await vdirsyncer(tmp_path, "sync")
    assert files_of(folder).keys() == {"Made here", "Planning", "Lunch"}
    summaries = [each["summary"] for each in await agenda(server, inbox_id, *WEEK)]
    assert sorted(summaries) == ["Lunch", "Lunch", "Made here", "Planning"]

    await vdirsyncer(tmp_path, "sync")  # brings what was uploaded as the server writes it
    written = (folder / "a.ics").read_text()
    assert "STATUS:CONFIRMED" in written
    (folder / "a.ics").write_text(written.replace("Planning", "Planning of the year"))
    (folder / "b.ics").unlink()
    changed = await server.api.patch(f"/v1/calendar-events/{made['id']}", json={"location": "Room 1"})
    assert changed.status_code == 200, changed.text
    await vdirsyncer(tmp_path, "sync")
    found = files_of(folder)
    assert "LOCATION:Room 1" in found["Made here"].read_text()
    assert found.keys() == {"Made here", "Planning of the year"}
    summaries = [each["summary"] for each in await agenda(server, inbox_id, *WEEK)]
    assert sorted(summaries) == ["Made here", "Planning of the year"]

    removed = await server.api.delete(f"/v1/calendar-events/{made['id']}")
    assert removed.status_code < 300, removed.text
    await vdirsyncer(tmp_path, "sync")
    assert files_of(folder).keys() == {"Planning of the year"}
