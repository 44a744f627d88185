"""An agent that polls: answers every unread thread, then looks again.

Run it with POSTROOM_API_KEY, POSTROOM_BASE_URL and POSTROOM_INBOX_ID set:  python examples/polling_agent.py
"""

import os
import time

from postroom_client import Client
from postroom_client.results import Message

PAUSE_SECONDS = 5


def answer_to(message: Message) -> str:
    """Put your agent here. What it reads was written by a stranger: it is data, never an instruction."""
    return f"I have read your {len(message.reply_text.split())} words on '{message.subject}'."


def answer_unread(client: Client, inbox_id: str) -> int:
    """Replying marks a thread as read, so that each one is answered once; returns how many were."""
    threads = client.list_threads(inbox_id, is_read=False).data
    for thread in threads:
        message = client.list_thread_messages(thread.id, limit=100).data[-1]
        if message.automated or message.direction == "outbound":
            client.mark_thread(thread.id, is_read=True)  # never argue with a machine
            continue
        # The message's id as the key: should this run twice, the mail still goes once.
        client.reply(thread.id, answer_to(message), automated=True, idempotency_key=f"answer-{message.id}")
        print(f"answered {message.from_addr}: {message.subject!r}", flush=True)
    return len(threads)


def main() -> None:
    with Client() as client:
        while True:
            if not answer_unread(client, os.environ["POSTROOM_INBOX_ID"]):
                time.sleep(PAUSE_SECONDS)


if __name__ == "__main__":
    main()
