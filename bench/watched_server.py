"""A server that watches the pauses of its own event loop; a line on standard input asks for the longest."""

import asyncio
import os
import sys
import time

import uvloop

from postroom import config
from postroom.assembly import serving
from postroom.commands.server import SWITCH_SECONDS
from postroom.processes import loading

TICK_SECONDS = 0.002


class Watch:
    """The longest time between two turns of the loop since it was last asked, and the most work in one.

    The work is processor time of the loop's thread: on a busy machine it says more than the clock.
    """

    def __init__(self) -> None:
        self.longest = self.most_work = 0.0

    async def run(self) -> None:
        while True:
            started, worked = time.perf_counter(), time.thread_time()
            await asyncio.sleep(TICK_SECONDS)
            self.longest = max(self.longest, time.perf_counter() - started - TICK_SECONDS)
            self.most_work = max(self.most_work, time.thread_time() - worked)

    def answer(self) -> None:
        if not sys.stdin.readline():
            asyncio.get_running_loop().stop()
            return
        print(f"{self.longest * 1000:.1f} {self.most_work * 1000:.1f}", flush=True)
        self.longest = self.most_work = 0.0


async def main() -> None:
    watch = Watch()
    async with serving(config.load(os.environ)) as postroom:
        watching = asyncio.create_task(watch.run())
        asyncio.get_running_loop().add_reader(sys.stdin.fileno(), watch.answer)
        print(f"{postroom.smtp_port} {postroom.first_token}", flush=True)
        loading.finish()  # as `postroom serve` does
        await watching


if __name__ == "__main__":
    sys.setswitchinterval(SWITCH_SECONDS)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
