"""Calls every tool of agentmail-toolkit and those of langchain-agentmail that have a counterpart."""

import json

from agentmail import AgentMail
from agentmail.environment import AgentMailEnvironment
from agentmail_toolkit.langchain import AgentMailToolkit
from langchain_agentmail import AgentMailToolkit as OtherToolkit

INBOX = "support@postroom.localhost"


def use_toolkit(base_url, key):
    environment = AgentMailEnvironment(http=base_url, websockets=base_url.replace("http", "ws"))
    found = AgentMailToolkit(AgentMail(api_key=key, environment=environment)).get_tools()
    tools, used = {tool.name: tool for tool in found}, set()

    def use(name, **given):
        used.add(name)
        return tools[name].invoke(given)

    made = use("create_inbox", username="made-by-a-tool")
    assert made.inbox_id in [inbox.inbox_id for inbox in use("list_inboxes").inboxes]
    assert use("get_inbox", inbox_id=made.inbox_id).email == made.inbox_id
    use("delete_inbox", inbox_id=made.inbox_id)
    assert "HTTP 404" in use("get_inbox", inbox_id=made.inbox_id)
    [item] = use("list_threads", inbox_id=INBOX).threads
    thread = use("get_thread", inbox_id=INBOX, thread_id=item.thread_id)
    message_id = thread.messages[0].message_id
    file_id = item.attachments[0].attachment_id
    file = use("get_attachment", inbox_id=INBOX, thread_id=item.thread_id, attachment_id=file_id)
    assert file.filename == "notes.txt"
    use("send_message", inbox_id=INBOX, to=["ann@there.example"], subject="Out", text="x")
    use("reply_to_message", inbox_id=INBOX, message_id=message_id, text="Yes")
    use("forward_message", inbox_id=INBOX, message_id=message_id, to=["eve@there.example"])
    labels = use("update_message", inbox_id=INBOX, message_id=message_id, add_labels=["done"]).labels
    assert "done" in labels
    assert "no counterpart" in use("agent_attach_human", human_email="ann@there.example")
    assert "no counterpart" in use("agent_verify", otp_code="123456")
    assert used == set(tools), set(tools) - used
    return len(used)


def use_other(base_url, key):
    """Of this one, which speaks an interface of its own, what it shares with the package."""
    found = OtherToolkit(api_key=key, base_url=f"{base_url}/v0").get_tools()
    tools = {type(tool).__name__: tool for tool in found}
    made = json.loads(tools["CreateInbox"].invoke({"name": "ignored"}))
    listed = json.loads(tools["ListMessages"].invoke({"inbox_id": INBOX, "limit": 5}))
    assert listed["count"] >= 1
    tools["DeleteInbox"].invoke({"inbox_id": made["inbox_id"]})
    return len(tools)


def use_all(base_url, key):
    return [use_toolkit(base_url, key), use_other(base_url, key)]
