"""Answers unread mail with a LangChain agent, which is a LangGraph graph, then ends.

Started by hand or by a timer, with POSTROOM_API_KEY, POSTROOM_BASE_URL, POSTROOM_INBOX_ID and the key
of the model set:
    python examples/frameworks/with_langchain.py anthropic:claude-sonnet-4-5
"""

import os
import sys
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel

from postroom_client import Client
from postroom_client.tools import INSTRUCTIONS, MailTools, work_off


def build(client: Client, inbox_id: str, model: str | BaseChatModel) -> Any:
    return create_agent(model, MailTools(client, inbox_id).functions, system_prompt=INSTRUCTIONS)


def answer_all(client: Client, inbox_id: str, agent: Any) -> int:
    """A separate run for each thread: what one email says never reaches the answer to another."""

    def run(thread_id: str) -> None:
        agent.invoke({"messages": [("user", f"Read and answer the thread {thread_id}.")]})

    return work_off(client, inbox_id, run)


if __name__ == "__main__":
    with Client() as client:
        inbox_id = os.environ["POSTROOM_INBOX_ID"]
        print(answer_all(client, inbox_id, build(client, inbox_id, sys.argv[1])), "threads are done with")
