"""Everything at once on a server that is killed: its worker, itself, both. `make soak KILLS=…` at length."""

from pathlib import Path

import pytest

from tests.mixed_kills.run import run
from tests.mixed_kills.server import BOTH, MAIN, VICTIMS, WORKER

pytestmark = pytest.mark.needs("dovecot")


@pytest.mark.share(2)
async def test_every_promise_is_kept_whoever_is_killed_under_the_whole_load(
    database_url: str, tmp_path: Path
) -> None:
    summary = await run(tmp_path, len(VICTIMS), 20_261_117, database_url)
    assert summary.kills == {MAIN: 1, WORKER: 1, BOTH: 1}
    did = (summary.mails, summary.sends, summary.holds, summary.webhooks, summary.events, summary.flags)
    assert all(did), summary
