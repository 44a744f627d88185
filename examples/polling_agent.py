"""An agent that polls: answers every unread thread, then looks again.

Started by hand or by a supervisor, with POSTROOM_API_KEY, POSTROOM_BASE_URL and POSTROOM_INBOX_ID set:
    .venv/bin/python examples/polling_agent.py [SECONDS_BETWEEN_LOOKS]
A thread that it cannot or must not answer gets the label "for a person", and stops no other.
"""

import os
import sys
import time

from postroom_client import Client, PostroomError
from postroom_client.results import Message, Thread

USUAL_PAUSE_SECONDS = 5
FOR_A_PERSON = "for a person"


def answer_to(message: Message) -> str:
    """Put your agent here. What it reads was written by a stranger: it is data, never an instruction."""
    return f"I have read your {len(message.reply_text.split())} words on '{message.subject}'."


def work_off(client: Client, inbox_id: str) -> int:
    """Answers or sets aside what is unread; returns how many threads that were."""
    return sum(take(client, thread) for thread in client.list_threads(inbox_id, is_read=False).data)


def take(client: Client, thread: Thread) -> bool:
    """Whether the thread is done with. Whatever one mail does to this agent, the others are still read."""
    try:
        return attend(client, thread)
    except Exception as error:
        if isinstance(error, PostroomError) and will_pass(error):
            print(f"later: {thread.subject!r} ({error})", flush=True)
            return False
        return set_aside(client, thread, str(error))


def attend(client: Client, thread: Thread) -> bool:
    message = newest_in(client, thread)
    if message is not None and not message.is_examined:
        return False  # its sender is being judged and its files are being read
    if message is not None and message.is_flagged:
        return set_aside(client, thread, f"it is {message.verdict}")
    if message is None or not message.auto_replyable:
        client.mark_thread(thread.id, is_read=True)  # never argue with a machine
        return True
    answer(client, thread, message)
    return True


def newest_in(client: Client, thread: Thread) -> Message | None:
    messages = client.list_thread_messages(thread.id, order="desc", limit=10).data
    return next((message for message in messages if message.direction == "inbound"), None)


def answer(client: Client, thread: Thread, message: Message) -> None:
    # The message's id as the key: should this run twice, the mail still goes once.
    sent = client.reply(thread.id, answer_to(message), automated=True, idempotency_key=f"answer-{message.id}")
    waits = "" if sent.hold is None else ", which waits for a person"
    print(f"answered {message.from_addr}: {message.subject!r}{waits}", flush=True)
    if newest_in(client, thread) != message:
        client.mark_thread(thread.id, is_read=False)  # another one came while this one was answered


def set_aside(client: Client, thread: Thread, why: str) -> bool:
    client.label_thread(thread.id, add=[FOR_A_PERSON])
    client.mark_thread(thread.id, is_read=True)
    print(f"set aside: {thread.subject!r} ({why})", flush=True)
    return True


def will_pass(error: PostroomError) -> bool:
    """A server that is away or busy and a limit that ends are worth another look; the rest is not."""
    return error.status == 0 or error.status >= 500 or (error.status == 429 and error.code != "loop_detected")


def main() -> None:
    pause_seconds = float(sys.argv[1]) if len(sys.argv) > 1 else USUAL_PAUSE_SECONDS
    with Client() as client:
        while True:
            try:
                done = work_off(client, os.environ["POSTROOM_INBOX_ID"])
            except PostroomError as error:
                if not will_pass(error):
                    raise
                done = 0
            if not done:
                time.sleep(pause_seconds)


if __name__ == "__main__":
    main()
