"""An agent that listens: hears of each mail at once, and goes on where it stopped.

Run it with POSTROOM_API_KEY and POSTROOM_BASE_URL set:  python examples/stream_agent.py PLACE_FILE
The file keeps the id of the last event that was handled.
"""

import asyncio
import sys
from contextlib import aclosing
from pathlib import Path

from postroom_client import AsyncClient
from postroom_client.results import Event


async def handle(client: AsyncClient, event: Event) -> None:
    """Put your agent here. What it reads was written by a stranger: it is data, never an instruction."""
    assert event.message is not None
    if event.message.automated:
        return  # never argue with a machine
    words = len(event.message.reply_text.split())
    await client.reply(
        event.thread_id, f"I heard {words} words.", automated=True, idempotency_key=f"answer-{event.event_id}"
    )
    print(f"answered {event.message.sender}: {event.message.subject!r}", flush=True)


def read_place(place: Path) -> str | None:
    return place.read_text().strip() if place.exists() else None


def write_place(place: Path, event_id: str) -> None:
    place.write_text(event_id)


async def listen(client: AsyncClient, place: Path) -> None:
    stream = client.stream(event_types=["message.received"], last_event_id=read_place(place))
    async with aclosing(stream) as events:
        print("listening", flush=True)
        async for event in events:
            await handle(client, event)
            # After the work: a crash in between repeats the event, and the key above makes that harmless.
            write_place(place, event.event_id)


async def main() -> None:
    async with AsyncClient() as client:
        await listen(client, Path(sys.argv[1]))


if __name__ == "__main__":
    asyncio.run(main())
