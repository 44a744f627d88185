"""Answers unread mail with Pydantic AI, then ends.

Started by hand or by a timer, with POSTROOM_API_KEY, POSTROOM_BASE_URL, POSTROOM_INBOX_ID and the key
of the model set:
    python examples/frameworks/with_pydantic_ai.py anthropic:claude-sonnet-4-5
"""

import os
import sys

from pydantic_ai import Agent
from pydantic_ai.models import Model

from postroom_client import Client
from postroom_client.tools import INSTRUCTIONS, MailTools, work_off


def build(client: Client, inbox_id: str, model: str | Model) -> Agent:
    return Agent(model, instructions=INSTRUCTIONS, tools=MailTools(client, inbox_id).functions)


def answer_all(client: Client, inbox_id: str, agent: Agent) -> int:
    """A separate run for each thread: what one email says never reaches the answer to another."""
    return work_off(
        client, inbox_id, lambda thread_id: agent.run_sync(f"Read and answer the thread {thread_id}.")
    )


if __name__ == "__main__":
    with Client() as client:
        inbox_id = os.environ["POSTROOM_INBOX_ID"]
        print(answer_all(client, inbox_id, build(client, inbox_id, sys.argv[1])), "threads are done with")
