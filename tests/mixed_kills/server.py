"""A server as a real process on ports that it keeps, killed in one of three ways and started again."""

import asyncio
import contextlib
import os
import signal
from pathlib import Path

from tests import warm_start
from tests.end_to_end.process import command_of, workers_of
from tests.ports import free_port
from tests.waiting import until

TOKEN = "pr_mixed-kills-0123456789abcdef"
HOST = "127.0.0.1"
PATIENCE_SECONDS = 120
MAIN, WORKER, BOTH = "main", "worker", "both"
VICTIMS = (MAIN, WORKER, BOTH)


class KilledServer:
    def __init__(self, folder: Path, database_url: str, outbound: str) -> None:
        self.folder, self.database_url = folder, database_url
        self.http_port, self.smtp_port, self.imap_port = free_port(), free_port(), free_port()
        self.base_url = f"http://{HOST}:{self.http_port}"
        self.log_path = folder.parent / f"{folder.name}.log"
        self._process: warm_start.Process | None = None
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("POSTROOM_")},
            "POSTROOM_DATA_DIR": str(folder),
            "POSTROOM_DATABASE_URL": database_url,
            "POSTROOM_HTTP": f"{HOST}:{self.http_port}",
            "POSTROOM_SMTP": f"{HOST}:{self.smtp_port}",
            "POSTROOM_IMAP": f"{HOST}:{self.imap_port}",
            "POSTROOM_OUTBOUND": outbound,
            "POSTROOM_API_KEY": TOKEN,
            "POSTROOM_PLAN": "business",
            "POSTROOM_WORKERS": "1",
            **{
                f"POSTROOM_{limit}": "0"
                for limit in ("SENDS_PER_MINUTE", "SENDS_PER_DAY", "COLD_PER_DAY", "REQUESTS_PER_MINUTE")
            },
        }

    async def start(self) -> None:
        await asyncio.to_thread(self._start)

    def _start(self) -> None:
        with self.log_path.open("a") as log:
            self._process = warm_start.start(self.environment, log)
        assert self._process.stdout is not None
        assert "is ready" in self._process.stdout.readline(), self.log_path.read_text()

    async def kill(self, victim: str) -> None:
        """As a power cut would: nothing is finished, nothing is said."""
        assert self._process is not None
        if victim != MAIN:
            for pid in workers_of(self._process.pid):
                with contextlib.suppress(ProcessLookupError):  # it has ended by itself
                    os.kill(pid, signal.SIGKILL)
        if victim != WORKER:
            await self._end(signal.SIGKILL)

    async def stop(self) -> None:
        if self._process is not None:
            await self._end(signal.SIGTERM)

    async def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        assert process is not None
        assert process.stdout is not None
        workers = workers_of(process.pid)
        process.send_signal(how)
        await asyncio.to_thread(process.wait, PATIENCE_SECONDS)
        process.stdout.close()
        await until(lambda: not any(command_of(worker) for worker in workers))
