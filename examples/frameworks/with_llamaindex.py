"""Answers unread mail with LlamaIndex, then ends.

Started by hand or by a timer, with POSTROOM_API_KEY, POSTROOM_BASE_URL, POSTROOM_INBOX_ID and the key
of the model set:
    python examples/frameworks/with_llamaindex.py claude-sonnet-4-5
"""

import asyncio
import os
import sys

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.llms.function_calling import FunctionCallingLLM

from postroom_client import Client
from postroom_client.tools import INSTRUCTIONS, MailTools, work_off


def build(client: Client, inbox_id: str, model: FunctionCallingLLM) -> FunctionAgent:
    return FunctionAgent(
        tools=MailTools(client, inbox_id).functions, llm=model, system_prompt=INSTRUCTIONS, streaming=False
    )


def answer_all(client: Client, inbox_id: str, agent: FunctionAgent) -> int:
    """A separate run for each thread: what one email says never reaches the answer to another."""

    async def answer(thread_id: str) -> None:
        await agent.run(f"Read and answer the thread {thread_id}.")

    return work_off(client, inbox_id, lambda thread_id: asyncio.run(answer(thread_id)))


if __name__ == "__main__":
    from llama_index.llms.anthropic import Anthropic

    with Client() as client:
        inbox_id = os.environ["POSTROOM_INBOX_ID"]
        agent = build(client, inbox_id, Anthropic(model=sys.argv[1]))
        print(answer_all(client, inbox_id, agent), "threads are done with")
