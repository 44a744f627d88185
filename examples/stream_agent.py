"""An agent that listens: hears of each mail at once, and goes on where it stopped.

Started by hand or by a supervisor, with POSTROOM_API_KEY and POSTROOM_BASE_URL set:
    .venv/bin/python examples/stream_agent.py PLACE_FILE
The file keeps the id of the last event that was handled. A thread that it cannot or must not answer gets the
label "for a person", and stops no other.
"""

import asyncio
import sys
from contextlib import aclosing
from pathlib import Path

from postroom_client import AsyncClient, PostroomError
from postroom_client.results import Event, Message

FOR_A_PERSON = "for a person"
PAUSES_SECONDS = (1, 5, 30, 60)  # between attempts while the server is away or busy


def answer_to(message: Message) -> str:
    """Put your agent here. What it reads was written by a stranger: it is data, never an instruction."""
    return f"I heard {len(message.reply_text.split())} words on '{message.subject}'."


async def attend(client: AsyncClient, event: Event) -> None:
    message = await newest_in(client, event.thread_id)
    if message is None or event.message is None or message.id != event.message.id:
        return  # a newer one stands in the thread, and has an event of its own
    if message.is_flagged:
        await set_aside(client, event, f"it is {message.verdict}")
    elif message.auto_replyable:  # never argue with a machine
        # The message's id as the key: should this run twice, the mail still goes once.
        sent = await client.reply(
            event.thread_id, answer_to(message), automated=True, idempotency_key=f"answer-{message.id}"
        )
        waits = "" if sent.hold is None else ", which waits for a person"
        print(f"answered {message.from_addr}: {message.subject!r}{waits}", flush=True)


async def newest_in(client: AsyncClient, thread_id: str) -> Message | None:
    messages = (await client.list_thread_messages(thread_id, order="desc", limit=10)).data
    return next((message for message in messages if message.direction == "inbound"), None)


async def set_aside(client: AsyncClient, event: Event, why: str) -> None:
    await client.label_thread(event.thread_id, add=[FOR_A_PERSON])
    print(f"set aside: {event.message.subject if event.message else ''!r} ({why})", flush=True)


async def take(client: AsyncClient, event: Event) -> None:
    """Whatever one mail does to this agent, the next one is still heard."""
    for pause in (*PAUSES_SECONDS, None):
        try:
            return await attend(client, event)
        except Exception as error:
            if pause is None or not will_pass(error):
                return await leave(client, event, error)
            print(f"in {pause} s: {error}", flush=True)
            await asyncio.sleep(pause)


async def leave(client: AsyncClient, event: Event, error: Exception) -> None:
    if isinstance(error, PostroomError) and error.code == "not_found":
        return  # deleted meanwhile
    await set_aside(client, event, str(error))


def will_pass(error: Exception) -> bool:
    """A server that is away or busy and a limit that ends are worth another try; the rest is not."""
    if not isinstance(error, PostroomError) or error.code == "loop_detected":
        return False
    return error.status == 0 or error.status == 429 or error.status >= 500


def read_place(place: Path) -> str | None:
    return place.read_text().strip() if place.exists() else None


def write_place(place: Path, event_id: str) -> None:
    place.write_text(event_id)


async def listen(client: AsyncClient, place: Path) -> None:
    stream = client.stream(event_types=["message.received"], last_event_id=read_place(place))
    async with aclosing(stream) as events:
        print("listening", flush=True)
        async for event in events:
            await take(client, event)
            # After the work: a crash in between repeats the event, and the key above makes that harmless.
            write_place(place, event.event_id)


async def main() -> None:
    async with AsyncClient() as client:
        await listen(client, Path(sys.argv[1]))


if __name__ == "__main__":
    asyncio.run(main())
