"""Rules for email that comes in: what they match, what they do, what they must not do."""

from typing import Any

import pytest

from postroom.clock import SECOND
from tests.api.test_dashboard import signed_in
from tests.conftest import Server
from tests.events.test_notifications import letters_to
from tests.raw_mails import raw_mail, raw_mail_with_files
from tests.waiting import until

pytestmark = pytest.mark.both_databases


async def make(server: Server, query: str, *actions: dict[str, Any], **fields: Any) -> dict[str, Any]:
    place = fields.pop("place", "")
    body = {"name": "a rule", "query": query, "actions": list(actions), **fields}
    answer = await server.api.post(f"/v1/rules{place}", json=body)
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


async def newest(server: Server, inbox_id: str, include: str = "") -> dict[str, Any]:
    page = (await server.api.get(f"/v1/inboxes/{inbox_id}/messages?limit=1{include}")).json()
    found: dict[str, Any] = page["data"][0]
    return found


async def trail(server: Server, message_id: str) -> list[dict[str, Any]]:
    """What the first rule did, once nothing is queued any more."""

    async def is_done() -> bool:
        return await server.resources.db.read(
            lambda tx: tx.one("select 1 as found from rule_tasks limit 1") is None
        )

    await until(is_done)
    message = (await server.api.get(f"/v1/messages/{message_id}")).json()
    steps: list[dict[str, Any]] = [step for rule in message["rules"] for step in rule["actions"]]
    return steps


async def events(server: Server) -> list[str]:
    return [each["event"] for each in (await server.api.get("/v1/events?limit=100")).json()["data"]]


@pytest.mark.sqlite_alone
async def test_a_rule_labels_marks_read_and_archives_and_the_message_says_so(server: Server) -> None:
    inbox_id = await server.new_inbox("hello")
    rule = await make(
        server,
        "from:billing@example.com has:file",
        {"type": "label", "label": "invoices"},
        {"type": "markRead"},
        {"type": "flag"},
        {"type": "archive"},
        place=f"?inboxId={inbox_id}",
    )
    await server.deliver(raw_mail("plain", **{"from": "billing@example.com"}), "hello")
    assert "rules" not in await newest(server, inbox_id)
    await server.deliver(
        raw_mail_with_files(("a.txt", "text/plain", b"one"), sender="billing@example.com"), "hello"
    )
    event = None
    while event is None or event["message"]["attachments"] == []:
        event = await server.next_event(None if event is None else event["event_id"])
    message = await newest(server, inbox_id)
    done = [{"type": kind, "outcome": "done"} for kind in ("label", "markRead", "flag", "archive")]
    assert message["rules"] == [{"id": rule["id"], "name": "a rule", "actions": done}]
    assert (message["labels"], message["folder"]) == (["flagged", "invoices"], "archive")
    assert (await server.api.get(f"/v1/messages/{message['id']}")).json()["folder"] == "archive"
    await server.api.patch(f"/v1/threads/{message['threadId']}", json={"isDone": False})
    assert (await newest(server, inbox_id))["folder"] == "inbox"
    await server.api.patch(f"/v1/threads/{message['threadId']}", json={"isDone": True})
    thread = (await server.api.get(f"/v1/threads/{message['threadId']}")).json()
    assert (thread["isDone"], thread["isRead"], thread["labels"]) == (True, True, ["flagged", "invoices"])
    listed = (await server.api.get(f"/v1/rules?inboxId={inbox_id}")).json()
    assert [(each["matches"], each["position"], each["enabled"]) for each in listed["data"]] == [(1, 0, True)]
    assert listed["data"][0]["lastMatchedAt"] is not None


async def test_rules_run_by_level_and_order_and_one_that_stops_ends_them(server: Server) -> None:
    inbox_id = await server.new_inbox("hello")
    place = f"?inboxId={inbox_id}"
    own = await make(server, "hello", {"type": "label", "label": "3"}, name="own", place=place)
    await make(server, "hello", {"type": "label", "label": "1"}, name="first")
    stops = await make(server, "plan", {"type": "label", "label": "2"}, name="stops", stop=True)
    await server.deliver(raw_mail("hello", subject="Plan"), "hello")
    assert [rule["name"] for rule in (await newest(server, inbox_id))["rules"]] == ["first", "stops"]
    await server.deliver(raw_mail("hello", subject="Other"), "hello")
    assert [rule["name"] for rule in (await newest(server, inbox_id))["rules"]] == ["first", "own"]
    moved = await server.api.patch(f"/v1/rules/{stops['id']}", json={"position": 0})
    assert moved.json()["position"] == 0
    await server.deliver(raw_mail("hello", subject="Plan"), "hello")
    assert [rule["name"] for rule in (await newest(server, inbox_id))["rules"]] == ["stops"]
    for change in ({"enabled": False}, {"enabled": True, "query": "nothing-like-it"}):
        assert (await server.api.patch(f"/v1/rules/{stops['id']}", json=change)).status_code == 200
        await server.deliver(raw_mail("hello", subject="Plan"), "hello")
        assert [rule["name"] for rule in (await newest(server, inbox_id))["rules"]] == ["first", "own"]
    assert (await server.api.delete(f"/v1/rules/{own['id']}")).status_code == 204
    assert (await server.api.get(f"/v1/rules/{own['id']}")).status_code == 404
    assert [each["name"] for each in (await server.api.get("/v1/rules")).json()["data"]] == ["stops", "first"]


@pytest.mark.sqlite_alone
async def test_what_a_rule_hides_has_no_event_and_what_it_trashes_is_in_no_list(server: Server) -> None:
    inbox_id = await server.new_inbox("hello")
    await make(server, "subject:quiet", {"type": "silent"})
    await make(server, "subject:waste", {"type": "trash"})
    for subject in ("quiet", "waste", "loud"):
        await server.deliver(raw_mail("x", subject=subject), "hello")
    listed = (await server.api.get(f"/v1/inboxes/{inbox_id}/messages")).json()
    assert [each["subject"] for each in listed["data"]] == ["loud", "quiet"]
    assert await events(server) == ["message.received"]
    usage = (await server.api.get("/v1/usage?group_by=inbox")).json()["data"]
    assert [each["received"] for each in usage] == [3]


QUERIES = {
    "is:first": True,
    "-is:first": False,
    "has:attachment": False,
    "-has:file": True,
    "auth:none": True,
    "auth:fail": False,
    "verdict:clean": True,
    "size:<20kb": True,
    "size:>1mb": False,
    "header:x-team": True,
    "header:x-team=blue": True,
    'header:"x-team=deep blue"': True,
    "header:x-team=red": False,
    "header:x-other": False,
    "list-id:news.example": True,
    "list-id:other.example": False,
    "from:alice -subject:invoice": True,
    "from:alice OR from:bob": True,
    "from:bob OR from:carol": False,
    "auth:fail OR is:first": True,
    "auth:fail OR is:sent": False,
    "category:personal": False,
    "in:hello": True,
    "in:other": False,
    "zeb*": True,
    '"striped zebra"': True,
    '"zebra striped"': False,
    "after:2026-11-01 before:2026-12-01": True,
    "before:2026-11-01": False,
    "is:unread": True,
    "junk:no": True,
    "junk:yes": False,
    "label:x": False,
}


async def test_a_rule_means_what_a_search_means(server: Server) -> None:
    inbox_id = await server.new_inbox("hello")
    for query in QUERIES:
        await make(server, query, {"type": "judge"}, name=query)
    raw = raw_mail("A striped zebra.", subject="Plan", x_team="deep blue", list_id="News <news.example>")
    await server.deliver(raw, "hello")
    await server.next_event()
    message = await newest(server, inbox_id)
    wanted = [query for query, is_matched in QUERIES.items() if is_matched]
    assert [rule["name"] for rule in message["rules"]] == wanted

    async def search(query: str) -> list[str]:
        answer = (await server.api.get("/v1/search", params={"q": query})).json()
        return [each["message"]["id"] for each in answer["data"]]

    async def is_indexed() -> bool:
        return await search("zebra") != []

    await until(is_indexed)
    for query, is_matched in QUERIES.items():
        assert await search(query) == [message["id"]] * is_matched, query
        tried = (await server.api.post("/v1/rules/test", json={"query": query})).json()
        assert (tried["matched"], tried["examined"]) == (int(is_matched), 1), query


WRONG: dict[str, tuple[dict[str, Any], ...]] = {
    "query": (
        {"query": "size:big"},
        {"query": "header:a:b"},
        {"query": "auth:maybe"},
        {"query": "assignee:me"},
        {"query": '"open'},
    ),
    "actions[0]": (
        {"actions": [{"type": "label"}]},
        {"actions": [{"type": "archive", "label": "x"}]},
        {"actions": [{"type": "reply", "body": "x", "templateId": "y"}]},
        {"actions": [{"type": "copyTo", "inboxId": "inb_" + "0" * 32}]},
        {"actions": [{"type": "webhook", "webhookId": "x"}]},
    ),
    "actions[0].to": ({"actions": [{"type": "forward", "to": "nobody"}]},),
    "actions[0].label": ({"actions": [{"type": "label", "label": "a\u0007"}]},),
    "actions[0].assigneeId": ({"actions": [{"type": "assign", "assigneeId": "x"}]},),
    "actions": (
        {"actions": [{"type": "snooze", "days": 1}, {"type": "archive"}]},
        {"actions": [{"type": "silent"}, {"type": "snooze", "days": 0}]},
        {"actions": []},
    ),
    "name": ({"name": "\u0007"},),
}


@pytest.mark.sqlite_alone
async def test_a_rule_that_is_wrong_is_refused_with_the_field(server: Server) -> None:
    good: dict[str, Any] = {"name": "x", "query": "x", "actions": [{"type": "archive"}]}
    for field, bodies in WRONG.items():
        for body in bodies:
            answer = await server.api.post("/v1/rules", json=good | body)
            assert (answer.status_code, answer.json()["field"][: len(field)]) == (400, field), body
    assert (await server.api.get("/v1/rules")).json() == {"data": [], "total": 0}
    assert (await server.api.post("/v1/rules?inboxId=inb_0", json=good)).status_code == 404
    for _ in range(100):
        assert (await server.api.post("/v1/rules", json=good)).status_code == 201
    assert (await server.api.post("/v1/rules", json=good)).status_code == 400


@pytest.mark.sqlite_alone
async def test_a_key_sees_and_changes_only_rules_of_its_scope(server: Server) -> None:
    inbox_id = await server.new_inbox("hello")
    pod_id = (await server.api.post("/v1/pods", json={"name": "p"})).json()["id"]
    key = (await server.api.post(f"/v1/pods/{pod_id}/api-keys", json={"name": "k"})).json()["token"]
    own = (await server.api.post(f"/v1/inboxes/{inbox_id}/api-keys", json={"name": "k"})).json()["token"]
    theirs = await make(server, "x", {"type": "archive"})
    inside = await make(server, "x", {"type": "archive"}, place=f"?inboxId={inbox_id}")
    body = {"name": "x", "query": "x", "actions": [{"type": "archive"}]}
    async with server.client(key) as pod, server.client(own) as agent:
        for rule in (theirs, inside):
            assert (await pod.get(f"/v1/rules/{rule['id']}")).status_code == 404
            assert (await pod.delete(f"/v1/rules/{rule['id']}")).status_code == 404
            assert (await pod.patch(f"/v1/rules/{rule['id']}", json={"name": 5})).status_code == 404
        assert (await pod.post(f"/v1/rules?inboxId={inbox_id}", json=body)).status_code == 404
        made = (await pod.post("/v1/rules", json=body)).json()
        assert (made["podId"], made["inboxId"]) == (pod_id, None)
        assert [each["id"] for each in (await pod.get("/v1/rules")).json()["data"]] == [made["id"]]
        assert (await agent.get("/v1/rules")).json()["data"][0]["id"] == inside["id"]
        assert (await agent.get(f"/v1/rules/{theirs['id']}")).status_code == 404
        assert (await agent.post("/v1/rules", json=body)).status_code == 403
        assert (await agent.post("/v1/rules/test", json={"query": "x"})).json()["matched"] == 0
    assert (await server.api.delete(f"/v1/pods/{pod_id}")).status_code == 204
    assert (await server.api.get(f"/v1/rules/{made['id']}")).status_code == 404


async def test_a_rule_forwards_answers_copies_and_posts_once_with_the_rights_of_its_maker(
    server: Server,
) -> None:
    inbox_id, other_id = await server.new_inbox("hello"), await server.new_inbox("other")
    await make(
        server,
        "subject:order",
        {"type": "forward", "to": "boss@example.org"},
        {"type": "redirect", "to": "clerk@example.org"},
        {"type": "reply", "body": "We have it."},
        {"type": "copyTo", "inboxId": other_id},
        {"type": "judge"},
        place=f"?inboxId={inbox_id}",
    )
    await server.deliver(raw_mail("One chair", subject="Order", message_id="<1@x>"), "hello")
    message = await newest_inbound(server, inbox_id)
    steps = await trail(server, message["id"])
    assert [(each["type"], each["outcome"]) for each in steps] == [
        ("forward", "done"),
        ("redirect", "done"),
        ("reply", "done"),
        ("copyTo", "done"),
        ("judge", "skipped"),
    ]
    sent = [(await server.api.get(f"/v1/messages/{each['messageId']}")).json() for each in steps[:3]]
    assert [each["headerTo"] for each in sent[::2]] == ["boss@example.org", "Alice <alice@example.com>"]
    assert sent[1]["bcc"] == ["clerk@example.org"]
    assert (sent[0]["subject"], sent[2]["subject"]) == ("Fwd: Order", "Re: Order")
    assert (sent[0]["automated"], sent[2]["automated"], sent[2]["threadId"]) == (
        True,
        True,
        message["threadId"],
    )
    raw = (await server.api.get(f"/v1/messages/{sent[2]['id']}/raw")).text
    assert "\r\nAuto-Submitted: auto-replied\r\n" in raw
    for each in sent[:2]:
        raw = (await server.api.get(f"/v1/messages/{each['id']}/raw")).text
        assert "X-Loop: hello@postroom.localhost\r\n" in raw
    assert not (await server.api.get(f"/v1/threads/{message['threadId']}")).json()["isRead"]
    copy = await newest_inbound(server, other_id)
    assert (copy["copiedFrom"], copy["bodyText"], copy["fromAddr"]) == (
        message["id"],
        message["bodyText"],
        message["fromAddr"],
    )
    # the second email of a day gets no second answer
    await server.deliver(raw_mail("Another chair", subject="Order", message_id="<2@x>"), "hello")
    second = await newest_inbound(server, inbox_id)
    assert (await trail(server, second["id"]))[2]["outcome"] == "skipped"


async def newest_inbound(server: Server, inbox_id: str) -> dict[str, Any]:
    page = (await server.api.get(f"/v1/inboxes/{inbox_id}/messages?limit=1&direction=inbound")).json()
    found: dict[str, Any] = page["data"][0]
    return found


@pytest.mark.sqlite_alone
async def test_no_answer_to_machines_and_no_way_round_in_circles(server: Server) -> None:
    inbox_id, other_id = await server.new_inbox("hello"), await server.new_inbox("other")
    answering = await make(server, "hello", {"type": "reply", "body": "Thanks"})
    there = await make(server, "hello", {"type": "copyTo", "inboxId": other_id})
    back = await make(server, "hello", {"type": "copyTo", "inboxId": inbox_id})
    forwarding = await make(server, "hello", {"type": "forward", "to": "boss@example.org"})
    for number, head in enumerate(
        (
            {"auto_submitted": "auto-replied"},
            {"precedence": "bulk"},
            {"list_id": "<x.example>"},
            {"from": "no-reply@example.com"},
        )
    ):
        await server.deliver(raw_mail("hello", message_id=f"<{number}@x>", **head), "hello")
        message = await newest_inbound(server, inbox_id)
        steps = await trail(server, message["id"])
        assert [each["outcome"] for each in steps] == ["skipped", "done", "skipped", "done"], head
        copies = (await server.api.get(f"/v1/inboxes/{other_id}/messages")).json()
        assert copies["total"] == number + 1
        copy = await newest_inbound(server, other_id)
        assert {each["outcome"] for each in await trail(server, copy["id"])} == {"skipped"}
    assert {each["enabled"] for each in (await server.api.get("/v1/rules")).json()["data"]} == {True}
    # what comes back from where it was forwarded to switches the rule off, and stays
    told = {"kind": "email", "target": "ann@example.org", "on": ["rule_disabled"]}
    await server.api.put("/v1/notifications", json={"targets": [told]})
    await server.deliver(raw_mail("hello", x_loop="hello@postroom.localhost"), "hello")
    message = await newest_inbound(server, inbox_id)
    steps = await trail(server, message["id"])
    assert steps[3]["outcome"] == "failed"
    listed = {each["id"]: each for each in (await server.api.get("/v1/rules")).json()["data"]}
    assert "loop" in listed[forwarding["id"]]["disabledReason"]
    assert [listed[rule["id"]]["enabled"] for rule in (answering, there, back, forwarding)] == [
        True,
        True,
        True,
        False,
    ]
    event = next(
        each
        for each in (await server.api.get("/v1/events?limit=100")).json()["data"]
        if each["event"] == "rule.disabled"
    )
    assert event["rule"]["id"] == forwarding["id"]
    server.clock.turn(6 * SECOND)
    [mail] = await until(lambda: server.resources.db.read(letters_to, "ann@example.org"))
    assert f"A rule is disabled: {forwarding['name']}" in mail["content"]
    assert f"{server.resources.config.base_url}/app/settings/rules" in mail["content"]
    on = await server.api.patch(f"/v1/rules/{forwarding['id']}", json={"enabled": True})
    assert (on.json()["enabled"], on.json()["disabledReason"]) == (True, None)


@pytest.mark.sqlite_alone
async def test_a_rule_sends_nothing_that_policy_or_approval_would_stop(server: Server) -> None:
    inbox_id = await server.new_inbox("hello")
    rule = await make(server, "hello", {"type": "forward", "to": "boss@example.org"})
    await server.api.patch("/v1/account", json={"approval": {"when": ["always"]}})
    await server.deliver(raw_mail("hello", message_id="<1@x>"), "hello")
    step = (await trail(server, (await newest_inbound(server, inbox_id))["id"]))[0]
    sent = (await server.api.get(f"/v1/messages/{step['messageId']}")).json()
    assert (sent["status"], sent["hold"]["state"]) == ("pending", "held")
    blocked = {"type": "block", "value": "example.org", "direction": "outbound"}
    assert (await server.api.post("/v1/policy/rules", json=blocked)).status_code == 201
    await server.deliver(raw_mail("hello", message_id="<2@x>"), "hello")
    message = await newest_inbound(server, inbox_id)
    assert (await trail(server, message["id"]))[0]["outcome"] == "failed"
    after = (await server.api.get(f"/v1/rules/{rule['id']}")).json()
    assert not after["enabled"]
    assert after["disabledReason"]


async def test_a_rule_of_a_revoked_key_sends_nothing(server: Server) -> None:
    inbox_id = await server.new_inbox("hello")
    key = (await server.api.post("/v1/api-keys", json={"name": "k"})).json()
    async with server.client(key["token"]) as client:
        body = {"name": "x", "query": "hello", "actions": [{"type": "forward", "to": "boss@example.org"}]}
        rule = (await client.post("/v1/rules", json=body)).json()
    assert (await server.api.delete(f"/v1/api-keys/{key['id']}")).status_code == 204
    await server.deliver(raw_mail("hello"), "hello")
    step = (await trail(server, (await newest_inbound(server, inbox_id))["id"]))[0]
    assert (step["outcome"], "messageId" in step) == ("failed", False)
    assert not (await server.api.get(f"/v1/rules/{rule['id']}")).json()["enabled"]


async def test_the_trial_says_what_a_rule_would_do_and_does_nothing(server: Server) -> None:
    inbox_id = await server.new_inbox("hello")
    for number in range(25):
        await server.deliver(raw_mail(f"word{number % 2}", message_id=f"<{number}@x>"), "hello")
    await server.deliver(raw_mail("word1", message_id="<a@x>", auto_submitted="auto-replied"), "hello")
    body = {
        "query": "word1",
        "inboxId": inbox_id,
        "actions": [{"type": "label", "label": "x"}, {"type": "reply", "body": "x"}],
    }
    tried = (await server.api.post("/v1/rules/test", json=body)).json()
    assert (tried["matched"], tried["examined"], len(tried["messages"])) == (13, 26, 13)
    outcomes = [[step["outcome"] for step in each["actions"]] for each in tried["messages"]]
    assert outcomes == [["done", "skipped"], *[["done", "done"]] * 12]
    assert (await server.api.get(f"/v1/threads?inboxId={inbox_id}&label=x")).json()["total"] == 0
    assert (await server.api.post("/v1/rules/test", json={**body, "inboxId": "inb_0"})).status_code == 400


GMAIL = """<?xml version='1.0' encoding='UTF-8'?>
<feed xmlns='http://www.w3.org/2005/Atom' xmlns:apps='http://schemas.google.com/apps/2006'>
<entry><category term='filter'/>
<apps:property name='from' value='billing@example.com OR shop@example.com'/>
<apps:property name='hasAttachment' value='true'/><apps:property name='size' value='2'/>
<apps:property name='sizeOperator' value='s_sl'/><apps:property name='sizeUnit' value='s_smb'/>
<apps:property name='label' value='Invoices'/><apps:property name='shouldMarkAsRead' value='true'/></entry>
<entry><apps:property name='subject' value='waste'/><apps:property name='shouldTrash' value='true'/></entry>
<entry><apps:property name='subject' value='kept'/>
<apps:property name='shouldNeverSpam' value='true'/></entry>
</feed>"""
THUNDERBIRD = """version="9"
logging="no"
name="Invoices"
enabled="yes"
type="17"
action="Move to folder"
actionValue="mailbox://nobody@Local%20Folders/Paid%20bills"
action="Mark read"
condition="AND (from,contains,billing@example.com) AND (subject,doesn't contain,draft)"
name="Either"
action="AddTag"
actionValue="$label1"
action="Stop execution"
condition="OR (subject,contains,red) OR (body,contains,blue)"
name="By age"
action="Delete"
condition="AND (age in days,is greater than,3)"
"""


@pytest.mark.sqlite_alone
async def test_rules_of_other_clients_come_in_switched_off_and_what_does_not_fit_is_named(
    server: Server,
) -> None:
    inbox_id = await server.new_inbox("hello")
    path = f"/v1/rules/import?inboxId={inbox_id}"
    found = (await server.api.post(path, json={"format": "gmail", "content": GMAIL})).json()
    assert [(rule["query"], [each["type"] for each in rule["actions"]]) for rule in found["data"]] == [
        (
            'from:"billing@example.com" OR from:"shop@example.com" has:attachment size:>2mb',
            ["label", "markRead"],
        ),
        ('subject:"waste"', ["trash"]),
    ]
    assert [each["name"] for each in found["skipped"]] == ["Gmail 3"]
    found = (await server.api.post(path, json={"format": "thunderbird", "content": THUNDERBIRD})).json()
    assert [(rule["query"], rule["stop"], rule["enabled"]) for rule in found["data"]] == [
        ('from:"billing@example.com" -subject:"draft"', False, False),
        ('subject:"red" OR "blue"', True, False),
    ]
    assert found["data"][0]["actions"] == [
        {"type": "label", "label": "Paid bills"},
        {"type": "archive"},
        {"type": "markRead"},
    ]
    assert [each["name"] for each in found["skipped"]] == ["By age"]
    bomb = "<!DOCTYPE x [<!ENTITY a 'aaaa'><!ENTITY b '&a;&a;&a;'>]><feed>&b;</feed>"
    for wrong in ({"format": "gmail", "content": bomb}, {"format": "thunderbird", "content": "x"}):
        answer = await server.api.post(path, json=wrong)
        assert (answer.status_code, answer.json()["field"]) == (400, "content"), wrong


@pytest.mark.sqlite_alone
async def test_a_rule_moves_to_junk_and_no_program_hears_of_it_as_received(server: Server) -> None:
    inbox_id = await server.new_inbox("hello")
    await make(server, "subject:lottery", {"type": "junk"})
    await server.deliver(raw_mail("x", subject="Lottery"), "hello")

    async def is_moved() -> bool:
        return "message.junk" in await events(server)

    await until(is_moved)
    assert await events(server) == ["message.junk"]
    listed = (await server.api.get(f"/v1/inboxes/{inbox_id}/messages")).json()
    assert listed["total"] == 0
    found = (await server.api.get(f"/v1/inboxes/{inbox_id}/messages?include=junk")).json()["data"]
    assert [each["folder"] for each in found] == ["junk"]


@pytest.mark.sqlite_alone
async def test_the_page_of_rules_shows_matches_before_it_saves(server: Server) -> None:
    inbox_id = await server.new_inbox("hello")
    await server.deliver(raw_mail("hello", subject="<b>Plan</b>"), "hello")
    path = "/app/settings/rules"
    form = {"inboxId": inbox_id, "name": "Plans", "query": "plan", "action": "label", "value": "plans"}
    async with signed_in(server) as page:
        tried = await page.post(path, data={**form, "save": ""})
        assert "1 of the last 1 messages match" in tried.text
        assert "&lt;b&gt;Plan&lt;/b&gt;" in tried.text
        assert (await server.api.get(f"/v1/rules?inboxId={inbox_id}")).json()["total"] == 0
        assert (await page.post(path, data={**form, "save": "yes"})).status_code == 303
        wrong = await page.post(path, data={**form, "action": "snooze", "value": "soon", "save": "yes"})
        assert wrong.status_code == 400
        shown = (await page.get(f"{path}?inboxId={inbox_id}")).text
        assert "If plan, label plans." in shown
        [rule] = (await server.api.get(f"/v1/rules?inboxId={inbox_id}")).json()["data"]
        off = await page.post(f"{path}/{rule['id']}/switch", data={"inboxId": inbox_id, "enabled": "false"})
        assert off.status_code == 303
        assert not (await server.api.get(f"/v1/rules/{rule['id']}")).json()["enabled"]
        for state, said in (("awaiting", "No answer is expected"), ("overdue", "Nobody is late")):
            assert said in (await page.get(f"/app/mail?state={state}")).text
        assert (await page.post(f"{path}/{rule['id']}/remove", data={"inboxId": inbox_id})).status_code == 303
    assert (await server.api.get("/v1/rules")).json()["total"] == 0
