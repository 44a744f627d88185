"""`python -m tests.mixed_kills KILLS [SEED]`: that many kills under the whole load, in runs of twenty.

Every second run is on PostgreSQL. A run that fails leaves its folder behind.
"""

import asyncio
import shutil
import sys
import tempfile
import traceback
from collections import Counter
from pathlib import Path

import uvloop

from tests import memory_folder
from tests.mixed_kills.run import Summary, run
from tests.postgres_databases import new_database
from tests.postgres_engine import Engine, running_engine

KILLS_OF_A_RUN = 20
EMPTY = "template0"


def run_once(kills: int, seed: int, database_url: str) -> Summary | None:
    folder = Path(tempfile.mkdtemp(prefix="postroom-kills-"))
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            summary = runner.run(run(folder, kills, seed, database_url))
    except Exception:
        traceback.print_exc()
        print(f"seed {seed}: a promise was broken; all of it is in {folder}", flush=True)
        return None
    shutil.rmtree(folder)
    print(f"seed {seed}: {'PostgreSQL' if database_url else 'SQLite'}, {summary}", flush=True)
    return summary


def run_on(engine: Engine, kills: int, seed: int) -> Summary | None:
    if seed % 2 == 0:
        return run_once(kills, seed, "")
    with new_database(engine.url, EMPTY) as url:
        return run_once(kills, seed, url)


def main(kills: int, seed: int = 0) -> int:
    killed: Counter[str] = Counter()
    failed, done = [], 0
    with running_engine(memory_folder.choose()) as engine:
        while done < kills:
            part = min(KILLS_OF_A_RUN, kills - done)
            summary = run_on(engine, part, seed)
            if summary is None:
                failed.append(seed)
            else:
                killed.update(summary.kills)
            done, seed = done + part, seed + 1
    print(f"{killed.total()} kills ({dict(killed)}), {len(failed)} runs failed {failed or ''}")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
