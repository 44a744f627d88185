"""Old mail brought in from an mbox by `postroom import`, once and then again."""

import os
import random
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import uvloop

from bench import consumption, mail_mix
from bench.processes import CHECKOUT, scratch_folder
from bench.results import Aim, Result
from postroom import config
from postroom.accounts import accounts
from postroom.clock import SystemClock
from postroom.mailbox import inboxes
from postroom.storage.database import Tx
from postroom.storage.opening import open_database
from postroom.transfer import mbox

DOMAIN = "postroom.localhost"
ADDRESS = f"bench@{DOMAIN}"
MAILS = 6_000
PLAIN_BYTES = 5_000
LOOK_SECONDS = 0.05
DAY_SECONDS = 86_400
KINDS = (("plain mails of 5 kB", True), ("a mix, 60 % HTML", False))
AIM = Aim(500, is_ceiling=False)


@dataclass(frozen=True, slots=True)
class Run:
    seconds: float
    cpu_seconds: float
    said: str


def measure(size: int = MAILS, kinds: Sequence[tuple[str, bool]] = KINDS) -> list[Result]:
    results = []
    for name, is_plain in kinds:
        with scratch_folder() as folder:
            uvloop.run(_make_inbox(folder / "data"))
            _write_mbox(folder / "old.mbox", size, is_plain)
            first, second = _import(folder), _import(folder)
        assert first.said.startswith(f"{size} messages"), first.said
        assert second.said.startswith("0 messages"), second.said
        results += [
            Result(f"{name}: imported", size / first.seconds, "mails/s", AIM),
            Result(f"{name}: processor time", first.cpu_seconds / size * 1000, "ms/mail"),
            Result(f"{name}: all of it again, nothing new", size / second.seconds, "mails/s"),
        ]
    return results


async def _make_inbox(folder: Path) -> None:
    db = await open_database(config.load({"POSTROOM_DATA_DIR": str(folder)}), SystemClock().now())
    await db.write(_add_inbox, SystemClock().now())
    await db.close()


def _add_inbox(tx: Tx, now: int) -> None:
    account = accounts.add(tx, "bench", "developer", now)
    inboxes.add(tx, account.id, "bench", None, None, DOMAIN, now)


def _write_mbox(path: Path, count: int, is_plain: bool) -> None:
    """One mail in five answers the one before it."""
    chance, begin = random.Random(mail_mix.SEED), time.time() - count - DAY_SECONDS
    with path.open("wb") as file:
        for number in range(count):
            raw = mail_mix.compose("old", number, ADDRESS, begin + number).removesuffix(b".\r\n")
            if is_plain:
                head = raw.partition(b"MIME-Version")[0]
                raw = head + b"\r\n" + mail_mix.lines(chance, PLAIN_BYTES).encode() + b"\r\n"
            if number % 5 == 4:
                raw = b"In-Reply-To: <old.%d@example.com>\r\n" % (number - 1) + raw
            file.write(mbox.to_mbox(raw, "someone@example.com", int((begin + number) * 1000)))


def _import(folder: Path) -> Run:
    """The processes that read are nobody's children when they end: what they used is looked at until then."""
    began = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-m", "postroom", "import", "mbox", str(folder / "old.mbox"), "--inbox", ADDRESS],
        env=os.environ | {"POSTROOM_DATA_DIR": str(folder / "data")},
        cwd=CHECKOUT,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        cpu = 0.0
        while process.poll() is None:
            cpu = max(cpu, consumption.of_family(process.pid).cpu_seconds)
            time.sleep(LOOK_SECONDS)
        seconds = time.perf_counter() - began
        assert process.stdout is not None
        return Run(seconds, cpu, process.stdout.read())
