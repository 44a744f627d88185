"""Answers unread mail with CrewAI, then ends.

Started by hand or by a timer, with POSTROOM_API_KEY, POSTROOM_BASE_URL, POSTROOM_INBOX_ID and the key
of the model set:
    python examples/frameworks/with_crewai.py anthropic/claude-sonnet-4-5
"""

import os
import sys

from crewai import Agent, BaseLLM, Crew, Task
from crewai.tools import tool

from postroom_client import Client
from postroom_client.tools import INSTRUCTIONS, MailTools, work_off


def build(client: Client, inbox_id: str, model: str | BaseLLM) -> Crew:
    tools = [tool(function) for function in MailTools(client, inbox_id).functions]
    agent = Agent(role="Support", goal="Answer mail", backstory=INSTRUCTIONS, tools=tools, llm=model)
    task = Task(
        description="Read and answer the thread {thread_id}.",
        expected_output="What became of the answer.",
        agent=agent,
    )
    return Crew(agents=[agent], tasks=[task])


def answer_all(client: Client, inbox_id: str, crew: Crew) -> int:
    """A separate run for each thread: what one email says never reaches the answer to another."""
    return work_off(client, inbox_id, lambda thread_id: crew.copy().kickoff({"thread_id": thread_id}))


if __name__ == "__main__":
    with Client() as client:
        inbox_id = os.environ["POSTROOM_INBOX_ID"]
        crew = build(client, inbox_id, sys.argv[1])
        print(answer_all(client, inbox_id, crew), "threads are done with")
