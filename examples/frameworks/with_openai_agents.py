"""Answers unread mail with the OpenAI Agents SDK, then ends.

Started by hand or by a timer, with POSTROOM_API_KEY, POSTROOM_BASE_URL, POSTROOM_INBOX_ID and
OPENAI_API_KEY set:
    python examples/frameworks/with_openai_agents.py
"""

import os

from agents import Agent, Runner, function_tool
from agents.models.interface import Model

from postroom_client import Client
from postroom_client.tools import INSTRUCTIONS, MailTools, work_off


def build(client: Client, inbox_id: str, model: str | Model | None = None) -> Agent:
    tools = [function_tool(function) for function in MailTools(client, inbox_id).functions]
    return Agent(name="Support", instructions=INSTRUCTIONS, tools=tools, model=model)


def answer_all(client: Client, inbox_id: str, agent: Agent) -> int:
    """A separate run for each thread: what one email says never reaches the answer to another."""
    return work_off(
        client, inbox_id, lambda thread_id: Runner.run_sync(agent, f"Read and answer the thread {thread_id}.")
    )


if __name__ == "__main__":
    with Client() as client:
        inbox_id = os.environ["POSTROOM_INBOX_ID"]
        print(answer_all(client, inbox_id, build(client, inbox_id)), "threads are done with")
