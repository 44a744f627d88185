"""`python -m tests.soak MINUTES FILE.svg`: a server under a mixed load, and a plot of what its processes use.

Mail comes in, mail is sent inside, lists and searches are read; nothing of it may grow but the database.
"""

import asyncio
import contextlib
import smtplib
import sys
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx2

from bench.processes import HOST, Server, running_postroom, scratch_folder
from tests.raw_mails import raw_mail
from tests.soak import plot, watch

SAMPLE_SECONDS = 5.0
PAUSE_SECONDS = 0.05  # of each client: half of what the machine can do, or less
TOKEN = "pr_soak-0123456789abcdef"
MEMORY, DESCRIPTORS, LOG, SLOWEST = "memory, MB", "descriptors", "log of the database, MB", "p99, ms"
Points = dict[str, dict[str, list[tuple[float, float]]]]


class Load:
    """Clients that go on until they are told to stop, and how long each of their requests took."""

    def __init__(self, server: Server, inbox_ids: list[str]) -> None:
        self._server, self._inbox_ids = server, inbox_ids
        self.took: dict[str, list[float]] = defaultdict(list)
        self.requests = 0
        self.failures = 0

    async def repeat(self, name: str, request: Callable[[int], Awaitable[bool]]) -> None:
        number = 0
        while True:
            number += 1
            started = time.perf_counter()
            try:
                is_good = await request(number)
            except (httpx2.HTTPError, OSError, smtplib.SMTPException):
                is_good = False
            self.took[name].append(time.perf_counter() - started)
            self.requests += 1
            self.failures += not is_good
            await asyncio.sleep(PAUSE_SECONDS)

    async def hand_in(self, number: int) -> bool:
        raw = raw_mail(
            "A line of text.\r\n" * (20_000 if number % 50 == 0 else 20), message_id=f"<{number}@soak>"
        )

        def talk() -> bool:
            with smtplib.SMTP(HOST, self._server.smtp_port, timeout=60) as smtp:
                return smtp.sendmail("a@there.example", [f"box{number % 4}@postroom.localhost"], raw) == {}

        return await asyncio.to_thread(talk)

    def reading(self, api: httpx2.AsyncClient, path: str) -> Callable[[int], Awaitable[bool]]:
        async def read(number: int) -> bool:
            inbox_id = self._inbox_ids[number % len(self._inbox_ids)]
            return (await api.get(path.format(inbox_id=inbox_id))).status_code == 200

        return read

    def p99(self, name: str) -> float:
        """Of what was asked since the last look, in milliseconds."""
        times, self.took[name] = sorted(self.took[name]), []
        return times[int(len(times) * 0.99)] * 1000 if times else 0.0


async def soak(server: Server, folder: Path, minutes: float) -> tuple[Points, Load]:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    base_url = f"http://{HOST}:{server.port}"
    async with httpx2.AsyncClient(base_url=base_url, headers=headers, timeout=60, trust_env=False) as api:
        made = [await api.post("/v1/inboxes", json={"mailboxName": f"box{number}"}) for number in range(4)]
        load = Load(server, [answer.json()["id"] for answer in made])
        clients = {
            "mail in": load.hand_in,
            "list": load.reading(api, "/v1/inboxes/{inbox_id}/messages"),
            "threads": load.reading(api, "/v1/inboxes/{inbox_id}/threads"),
            "search": load.reading(api, "/v1/search?q=line&inboxId={inbox_id}&limit=5"),
        }
        tasks = [asyncio.create_task(load.repeat(name, request)) for name, request in clients.items()]
        try:
            return await sample(server, folder, minutes, load, list(clients)), load
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def sample(server: Server, folder: Path, minutes: float, load: Load, names: list[str]) -> Points:
    points: Points = {panel: defaultdict(list) for panel in (MEMORY, DESCRIPTORS, LOG, SLOWEST)}
    started = time.monotonic()
    while (at := time.monotonic() - started) < minutes * 60:
        for name, pid in watch.processes(server.pid):
            with contextlib.suppress(OSError):
                points[MEMORY][name].append((at, watch.memory_megabytes(pid)))
                points[DESCRIPTORS][name].append((at, watch.descriptors(pid)))
        points[LOG]["server"].append((at, watch.log_megabytes(folder)))
        for name in names:
            points[SLOWEST][name].append((at, load.p99(name)))
        await asyncio.sleep(SAMPLE_SECONDS)
    return points


def tell(points: Points, load: Load) -> None:
    print(f"{load.requests} requests, {load.failures} failed")
    for panel, series in points.items():
        for name, line in series.items():
            values = [value for _, value in line]
            half = values[len(values) // 2 :]
            print(f"{panel:26} {name:10} middle {half[0]:9.1f}  end {half[-1]:9.1f}  most {max(values):9.1f}")


def main(minutes: str = "10", file: str = "soak.svg") -> int:
    with scratch_folder() as folder, running_postroom(folder, POSTROOM_API_KEY=TOKEN) as server:
        points, load = asyncio.run(soak(server, folder, float(minutes)))
    Path(file).write_text(plot.draw(points))
    tell(points, load)
    print(f"The plot is in {file}.")
    return bool(load.failures)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
