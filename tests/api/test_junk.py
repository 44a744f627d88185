"""Junk: what a message shows of it, the Junk folder, and what people say of it."""

from base64 import b64encode
from typing import Any

import pytest

from postroom.inward.junk import models
from postroom.web.agentmail import events as agentmail_events
from postroom_mail.junk import model
from tests.adversary.hostile import hostile
from tests.api.test_cross_tenant import call_tool
from tests.api.test_dashboard import signed_in
from tests.api.test_keys import second_account
from tests.conftest import Server
from tests.raw_mails import raw_mail
from tests.waiting import until

OFFER = (
    "Congratulations winner! Buy cheap viagra now, no prescription, lowest prices guaranteed! Click here to"
    " order today and save 90%! Make money fast, work from home, earn $5000 a week, risk free, money back."
    " To be removed from this mailing list click here."
    " Act now, this is a limited time offer! Visit http://www.cheap-meds4u.biz/order.html today."
    " Dear friend, 100% FREE! No credit check, get cash now. You have nothing to lose!"
)
NOTE = "The tests pass again after the change to the parser. I will look at the second patch on Monday."


def offer(number: int = 1, **fields: str) -> bytes:
    given = {
        "from": '"$$$ Big Winner" <win8273@promo-deals.example>',
        "subject": "FREE!!! $$$ Make money fast",
    }
    return raw_mail(OFFER, message_id=f"<offer{number}@promo.example>", **(given | fields))


def note(number: int = 1, **fields: str) -> bytes:
    return raw_mail(NOTE, message_id=f"<note{number}@work.example>", subject="Re: parser", **fields)


async def an_inbox(server: Server, name: str, **junk: Any) -> str:
    inbox_id = await server.new_inbox(name)
    if junk:
        answer = await server.api.patch(f"/v1/inboxes/{inbox_id}", json={"junk": junk})
        assert answer.status_code == 200, answer.text
    return inbox_id


async def messages_of(server: Server, inbox_id: str, **query: str) -> list[dict[str, Any]]:
    page = (await server.api.get(f"/v1/inboxes/{inbox_id}/messages", params=query)).json()
    assert page["total"] == len(page["data"])
    found: list[dict[str, Any]] = page["data"]
    return found


async def kinds(server: Server) -> list[str]:
    page = (await server.api.get("/v1/events")).json()
    return [each["event"] for each in page["data"] if each["event"].startswith("message.")]


async def came(server: Server, count: int) -> None:
    async def have() -> bool:
        return len(await kinds(server)) >= count

    await until(have)


@pytest.mark.sqlite_alone
async def test_a_message_says_how_likely_it_is_junk_and_stays_where_it_is(server: Server) -> None:
    inbox_id = await an_inbox(server, "hello")
    await server.deliver(offer(), "hello")
    await server.deliver(note(), "hello")
    await came(server, 2)
    wanted, junk = await messages_of(server, inbox_id)
    assert junk["junk"]["isJunk"]
    assert junk["junk"]["score"] >= 0.9
    assert junk["junk"]["reasons"][0]["name"] == "words"
    assert junk["junk"]["reasons"][0]["weight"] > 2
    assert not wanted["junk"]["isJunk"]
    assert wanted["junk"]["score"] < 0.2
    assert (junk["folder"], wanted["folder"]) == ("inbox", "inbox")
    assert await kinds(server) == ["message.received"] * 2
    event = (await server.api.get("/v1/events")).json()["data"][0]["message"]["junk"]
    assert event["is_junk"]
    assert event["score"] == junk["junk"]["score"]


@pytest.mark.sqlite_alone
async def test_with_a_folder_junk_is_in_no_list_thread_count_and_search(server: Server) -> None:
    inbox_id = await an_inbox(server, "hello", action="folder")
    await server.deliver(offer(), "hello")
    await server.deliver(note(), "hello")
    await came(server, 2)
    assert sorted(await kinds(server)) == ["message.junk", "message.received"]
    assert [each["subject"] for each in await messages_of(server, inbox_id)] == ["Re: parser"]
    (junk,) = [each for each in await messages_of(server, inbox_id, include="junk") if each["junk"]["isJunk"]]
    assert (junk["folder"], junk["threadId"], junk["blocked"]) == ("junk", "", False)
    assert [each["subject"] for each in await messages_of(server, inbox_id, include="blocked")] == [
        "Re: parser"
    ]
    threads = (await server.api.get(f"/v1/inboxes/{inbox_id}/threads")).json()
    assert (threads["total"], threads["data"][0]["subject"]) == (1, "Re: parser")

    async def found(q: str, **query: str) -> list[str]:
        answer = await server.api.get("/v1/search", params={"q": q, **query})
        return [each["message"]["id"] for each in answer.json()["data"]]

    async def is_indexed() -> bool:
        return await found("viagra", include="junk") == [junk["id"]]

    await until(is_indexed)
    assert await found("viagra is:junk") == [junk["id"]]
    assert await found("viagra") == await found("viagra is:blocked") == []
    assert (await server.api.post(f"/v1/messages/{junk['id']}/release")).json()["error"] == "nothing_to_do"


@pytest.mark.sqlite_alone
async def test_what_is_not_junk_comes_in_as_if_it_came_now_and_junk_leaves_its_thread(server: Server) -> None:
    inbox_id = await an_inbox(server, "hello", action="folder")
    await server.deliver(offer(), "hello")
    await came(server, 1)
    (junk,) = await messages_of(server, inbox_id, include="junk")
    server.clock.turn(300_000)
    let_in = (await server.api.post(f"/v1/messages/{junk['id']}/not-junk")).json()
    assert (let_in["folder"], let_in["junk"]["isJunk"]) == ("inbox", False)
    assert let_in["junk"]["score"] == junk["junk"]["score"]
    assert let_in["createdAt"] > junk["createdAt"]
    assert let_in["threadId"]
    assert await kinds(server) == ["message.junk", "message.received"]
    await server.deliver(note(2, in_reply_to="<offer1@promo.example>"), "hello")
    await came(server, 3)
    thread = (await server.api.get(f"/v1/threads/{let_in['threadId']}/messages")).json()
    assert len(thread["data"]) == 2

    taken = (await server.api.post(f"/v1/messages/{junk['id']}/junk")).json()
    assert (taken["folder"], taken["threadId"], taken["junk"]["isJunk"]) == ("junk", "", True)
    thread = (await server.api.get(f"/v1/threads/{let_in['threadId']}/messages")).json()
    assert [each["subject"] for each in thread["data"]] == ["Re: parser"]
    assert (await kinds(server))[-1] == "message.junk"
    back = (await server.api.post(f"/v1/messages/{junk['id']}/not-junk")).json()
    assert back["threadId"] == let_in["threadId"], "it finds back by the messages that stayed"
    told = (await server.api.get("/v1/junk")).json()
    assert (told["junk"], told["wanted"]) == (0, 1), "the last word counts"
    counts = (await server.api.get("/v1/audit")).json()["data"]
    assert [each["action"] for each in counts[:3]] == ["message.not_junk", "message.junk", "message.not_junk"]


@pytest.mark.sqlite_alone
async def test_who_was_written_to_answers_and_allowed_senders_are_no_junk_by_words_alone(
    server: Server,
) -> None:
    inbox_id = await an_inbox(server, "hello", action="folder")
    body = {"to": ["friend@pals.example"], "subject": "Hi", "body": "Hi"}
    path, key = f"/v1/inboxes/{inbox_id}/send", {"Idempotency-Key": "one"}
    sent = (await server.api.post(path, json=body, headers=key)).json()

    rule = {"type": "allow", "value": "news.example", "direction": "inbound"}
    assert (await server.api.post("/v1/policy/rules", json=rule)).status_code == 201
    own_id = (await server.api.get(f"/v1/messages/{sent['messageId']}")).json()["rfcMessageId"]
    for number, (fields, reason) in enumerate(
        [
            ({"from": "friend@pals.example"}, "correspondent"),
            ({"in_reply_to": own_id}, "answer"),
            ({"from": "editor@news.example"}, "allow_rule"),
        ]
    ):
        await server.deliver(offer(number + 10, **fields), "hello")
        await came(server, number + 1)
        newest = (await messages_of(server, inbox_id, direction="inbound"))[0]
        assert not newest["junk"]["isJunk"], reason
        assert reason in [each["name"] for each in newest["junk"]["reasons"]]
    await server.deliver(offer(20), "hello")
    await came(server, 4)
    assert (await kinds(server))[-1] == "message.junk", "a stranger has no such reason"


@pytest.mark.sqlite_alone
async def test_junk_is_set_on_account_pod_and_inbox_and_wrong_values_name_themselves(server: Server) -> None:
    inbox_id = await an_inbox(server, "hello")
    assert (await server.api.patch("/v1/account", json={"junk": {"action": "folder"}})).status_code == 200
    await server.deliver(offer(1), "hello")
    await came(server, 1)
    await server.api.patch(f"/v1/inboxes/{inbox_id}", json={"junk": {"action": "mark"}})
    await server.deliver(offer(2), "hello")
    await came(server, 2)
    assert await kinds(server) == ["message.junk", "message.received"]
    for wrong in (
        {"action": "eat"},
        {"threshold": 0},
        {"threshold": 1.5},
        {"rejectThreshold": 0.5},
        {"x": 1},
    ):
        answer = await server.api.patch(f"/v1/inboxes/{inbox_id}", json={"junk": wrong})
        assert answer.status_code == 400, wrong
    kept = (await server.api.get(f"/v1/inboxes/{inbox_id}")).json()["junk"]
    assert kept == {"action": "mark", "threshold": 0.9, "rejectThreshold": 0.99}


@pytest.mark.sqlite_alone
async def test_what_people_say_is_learned_and_counts_for_the_next_of_its_kind(server: Server) -> None:
    inbox_id = await an_inbox(server, "hello", action="folder")
    text = "Our quarterly barnacle digest: hull scraping news for every yacht owner of the harbour."

    def digest(number: int) -> bytes:
        fields = {"from": "Barnacle Digest <digest@hulls.example>", "subject": "Barnacle digest"}
        return raw_mail(f"{text} Issue {number}.", message_id=f"<d{number}@hulls.example>", **fields)

    await server.deliver(digest(1), "hello")
    await came(server, 1)
    (first,) = await messages_of(server, inbox_id)
    before = first["junk"]["score"]
    assert before < 0.9
    await server.api.post(f"/v1/messages/{first['id']}/junk")

    async def is_learned() -> bool:
        return bool((await server.api.get("/v1/junk")).json() == {"junk": 1, "wanted": 0, "waiting": 0})

    await until(is_learned)
    await server.deliver(digest(2), "hello")
    await came(server, 3)
    second = (await messages_of(server, inbox_id, include="junk"))[0]
    assert second["junk"]["score"] > 3 * before


@pytest.mark.sqlite_alone
async def test_the_pages_show_junk_with_its_reasons_and_move_it(server: Server) -> None:
    inbox_id = await an_inbox(server, "hello", action="folder")
    await server.deliver(offer(), "hello")
    await came(server, 1)
    (junk,) = await messages_of(server, inbox_id, include="junk")
    async with signed_in(server) as browser:
        page = await browser.get(f"/app/messages/{junk['id']}")
        assert "Not junk" in page.text
        assert "words" in page.text
        await browser.post(f"/app/messages/{junk['id']}/not-junk")
        assert [each["id"] for each in await messages_of(server, inbox_id)] == [junk["id"]]
        page = await browser.get(f"/app/messages/{junk['id']}")
        assert "Move to Junk" in page.text
        await browser.post(f"/app/messages/{junk['id']}/junk")
    assert await messages_of(server, inbox_id) == []


async def test_in_v0_junk_has_the_label_spam_and_an_event_of_its_own(server: Server) -> None:
    inbox_id = await an_inbox(server, "hello", action="folder")
    await server.deliver(offer(), "hello")
    await came(server, 1)
    listed = (await server.api.get(f"/v0/inboxes/{inbox_id}/messages")).json()
    assert listed["messages"] == []
    query = {"include_spam": "true"}
    (spam,) = (await server.api.get(f"/v0/inboxes/{inbox_id}/messages", params=query)).json()["messages"]
    assert "spam" in spam["labels"]
    assert agentmail_events.KINDS_OF_V0["message.junk"] == ("message.received.spam",)
    assert "message.received.spam" in agentmail_events.NOT_BY_DEFAULT


@pytest.mark.sqlite_alone
async def test_a_folder_of_another_mail_client_teaches_and_is_not_stored(server: Server) -> None:
    words = [
        b"Subject: Parser patch %d\r\nFrom: dev@work.example\r\n\r\nplumbus grommet %d" % (n, n)
        for n in range(20)
    ]

    async def teach(is_junk: bool, raws: list[bytes]) -> dict[str, Any]:
        encoded = [b64encode(each).decode() for each in raws]
        answer = await server.api.post("/v1/junk/examples", json={"isJunk": is_junk, "messages": encoded})
        found: dict[str, Any] = answer.json()
        return found

    assert (await teach(True, words))["junk"] == 20
    assert (await teach(True, words))["junk"] == 20, "the same again is one example"

    async def is_learned() -> bool:
        return bool((await server.api.get("/v1/junk")).json()["waiting"] == 0)

    await until(is_learned)
    inbox_id = await an_inbox(server, "hello")
    await server.deliver(note(1), "hello")
    await came(server, 1)
    assert len(await messages_of(server, inbox_id)) == 1
    told = await teach(False, words[:5])
    assert (told["junk"], told["wanted"]) == (15, 5), "the last word counts"
    for wrong in ("?", "", "QQ"):
        refused = await server.api.post("/v1/junk/examples", json={"isJunk": True, "messages": [wrong]})
        assert (refused.status_code, refused.json()["field"]) == (400, "messages"), wrong
    key = await server.api.post("/v1/api-keys", json={"inboxId": inbox_id, "permissions": ["read", "send"]})
    async with server.client(key.json()["token"]) as inner:
        asked = {"isJunk": True, "messages": ["QUJD"]}
        assert (await inner.post("/v1/junk/examples", json=asked)).status_code in (403, 404)
        assert (await inner.delete("/v1/junk")).status_code in (403, 404)
    await until(is_learned)
    assert (await server.resources.db.read(models.find_for_inbox, inbox_id)).taught
    assert (await server.api.delete("/v1/junk")).status_code == 204
    assert (await server.api.get("/v1/junk")).json() == {"junk": 0, "wanted": 0, "waiting": 0}
    assert (await server.resources.db.read(models.find_for_inbox, inbox_id)).taught == ()
    entry = (await server.api.get("/v1/audit")).json()["data"][0]
    assert (entry["action"], entry["before"]) == ("junk.reset", {"junk": 15, "wanted": 5, "waiting": 0})
    large = b64encode(b"x" * 800_000).decode()
    refused = await server.api.post("/v1/junk/examples", json={"isJunk": True, "messages": [large]})
    assert (refused.status_code, "Send less" in refused.json()["message"]) == (413, True)


async def test_pages_say_of_many_that_they_are_junk_or_not(server: Server) -> None:
    inbox_id = await an_inbox(server, "hello", action="folder")
    for number in (1, 2, 3):
        await server.deliver(offer(number), "hello")
    for number in (1, 2):
        await server.deliver(note(number), "hello")
    await came(server, 5)
    async with signed_in(server) as browser:

        async def is_listed() -> bool:
            page = (await browser.get("/app/search", params={"q": "is:junk"})).text
            return page.count('name="ids"') == 3 and 'action="/app/junk/not"' in page

        await until(is_listed)
        whole = await messages_of(server, inbox_id, include="junk")
        apart = [each["id"] for each in whole if each["folder"] == "junk"]
        page = (await browser.get("/app/search", params={"q": "is:junk"})).text
        assert all(f'href="/app/messages/{each}"' in page for each in apart)
        moved = await browser.post("/app/junk/not", data={"ids": apart[:2], "back": "/app/search?q=is:junk"})
        assert moved.status_code in (200, 303)
        assert len(await messages_of(server, inbox_id)) == 4
        threads = (await server.api.get(f"/v1/inboxes/{inbox_id}/threads")).json()["data"]
        notes = [each["id"] for each in threads if each["subject"] == "Re: parser"]
        await browser.post("/app/mail/marks", data={"ids": notes, "action": "junk"})
    subjects = [each["subject"] for each in await messages_of(server, inbox_id)]
    assert subjects == ["FREE!!! $$$ Make money fast"] * 2


@pytest.mark.sqlite_alone
async def test_agents_see_no_junk_in_the_lists_and_searches_of_mcp(server: Server) -> None:
    inbox_id = await an_inbox(server, "hello", action="folder")
    await server.deliver(offer(), "hello")
    await server.deliver(note(), "hello")
    await came(server, 2)
    made = await server.api.post("/v1/api-keys", json={"inboxId": inbox_id, "permissions": ["read"]})
    async with server.client(made.json()["token"]) as agent:
        listed = await call_tool(agent, "list_threads", {})
        assert "Re: parser" in listed

        async def is_searched() -> bool:
            return "Re: parser" in await call_tool(agent, "search_messages", {"q": "patch"})

        await until(is_searched)
        found = await call_tool(agent, "search_messages", {"q": "viagra OR patch"})
    for text in (listed, found):
        assert "Re: parser" in text
        assert "Make money fast" not in text


async def teach_many(server: Server, token: str, is_junk: bool, raws: list[bytes]) -> None:
    async with server.client(token) as teacher:
        for start in range(0, len(raws), 50):
            encoded = [b64encode(each).decode() for each in raws[start : start + 50]]
            answer = await teacher.post("/v1/junk/examples", json={"isJunk": is_junk, "messages": encoded})
            assert answer.status_code == 200, answer.text

    async def is_learned() -> bool:
        return bool((await server.api.get("/v1/junk")).json()["waiting"] == 0)

    await until(is_learned)


async def scores(server: Server, inbox_id: str, number: int) -> tuple[float, float]:
    """The score of a new offer, and of a new note."""
    before = len(await kinds(server))
    await server.deliver(offer(number), "hello")
    await server.deliver(note(number), "hello")
    await came(server, before + 2)
    found = {each["subject"]: each["junk"] for each in await messages_of(server, inbox_id)}
    return found["FREE!!! $$$ Make money fast"]["score"], found["Re: parser"]["score"]


@pytest.mark.share(2)
@pytest.mark.sqlite_alone
@pytest.mark.parametrize("is_junk", [True, False])
async def test_a_thousand_wrong_examples_of_one_user_do_not_turn_the_filter(
    server: Server, is_junk: bool
) -> None:
    inbox_id = await an_inbox(server, "hello")
    clean = await scores(server, inbox_id, 1)
    make = note if is_junk else offer
    await teach_many(server, server.token, is_junk, [make(number) for number in range(10, 1_010)])
    assert (await server.api.get("/v1/junk")).json() == {
        "junk": 1_000 * is_junk,
        "wanted": 1_000 * (not is_junk),
        "waiting": 0,
    }
    poisoned = await scores(server, inbox_id, 2)
    for now, before in zip(poisoned, clean, strict=True):
        moved = (model.log_odds(now) - model.log_odds(before)) * (1 if is_junk else -1)
        assert -0.05 <= moved <= 1
    assert poisoned[1] < 0.9 <= poisoned[0], "a note is no junk and an offer is, whatever one user says"
    async with server.client(await second_account(server)) as other:
        made = (await other.post("/v1/inboxes", json={"mailboxName": "beside"})).json()
    judge = await server.resources.db.read(models.find_for_inbox, made["id"])
    assert judge.taught == ()

    make_right = offer if not is_junk else note
    right = [make_right(number) for number in range(10, 410)]
    await teach_many(server, server.token, not is_junk, right)
    offered, noted = await scores(server, inbox_id, 3)
    assert offered >= 0.9 > 0.5 > noted, "the same user takes it back"


@pytest.mark.sqlite_alone
async def test_a_folder_of_one_kind_does_not_displace_what_an_earlier_folder_taught(server: Server) -> None:
    inbox_id = await an_inbox(server, "hello")

    def digest(number: int, subject: str, text: str) -> bytes:
        fields = {"from": "Digest <digest@hulls.example>", "subject": subject}
        return raw_mail(
            f"{text} Issue {number}.", message_id=f"<{subject[:1]}{number}@hulls.example>", **fields
        )

    scraped = "Hull scraping news for every yacht owner of the harbour: buy anodes."
    tides = "Tide news for every yacht owner of the harbour: the lock opens."
    digests = [digest(number, "Barnacle digest", scraped) for number in range(62)]
    await teach_many(server, server.token, True, digests[:60])
    await server.deliver(digests[60], "hello")
    await came(server, 1)
    await teach_many(
        server, server.token, False, [digest(number, "Harbour digest", tides) for number in range(200)]
    )
    await server.deliver(digests[61], "hello")
    await came(server, 2)
    after, before = [each["junk"]["score"] for each in await messages_of(server, inbox_id)]
    assert after >= before - 0.05


@pytest.mark.sqlite_alone
async def test_hostile_emails_teach_like_any_other(server: Server) -> None:
    part = b"--b\r\nContent-Type: text/plain; charset=x-broken\r\n\r\nword \xff\r\n"
    hostile_mails = [
        b"\0",
        b"\r\n\r\n",
        b"Content-Type: multipart/mixed; boundary=b\r\n\r\n" + part * 1_000 + b"--b--\r\n",
        b"Subject: =?utf-7?q?+2AA-?=\r\nContent-Type: text/plain; charset=utf-7\r\n\r\n+2AA- hello",
        b"From: <a@x.\xff\xed\xa0\x80>\r\nContent-Type: text/html\r\n\r\n<a href='http://&#xD800;/'>x</a>",
        b"X: y\r\n" * 80_000,
        *[hostile(seed).raw for seed in range(40)],
    ]
    await teach_many(server, server.token, True, hostile_mails)
    await teach_many(server, server.token, False, hostile_mails)
    told = (await server.api.get("/v1/junk")).json()
    assert told == {"junk": 0, "wanted": len(hostile_mails), "waiting": 0}
    assert not server.resources.loops.failing()
