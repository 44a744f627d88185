"""What once misled a reader: each page beside data that showed it, on a server that keeps mail for others."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import expect

from postroom.clock import HOUR, to_iso
from tests.browser.conftest import Open
from tests.browser.house import House, house
from tests.browser.made_up_dashboard import ask, trick
from tests.conftest import settings
from tests.raw_mails import raw_mail
from tests.waiting import wait_until

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.share(3)]

SIMULATOR = "simulator.postroom.localhost"
BAR = ("Mail", "Approvals", "Drafts", "Agents", "Events")
IDS = re.compile(r"\b(inb|key|pod|msg|dom|ses|acc|del|evt)_[0-9a-zA-Z]")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    folder = tmp_path_factory.mktemp("house")
    with house(folder, config=settings(folder, OUTBOUND="capture")) as opened:
        yield opened


@pytest.fixture(scope="module")
def support(running: House) -> str:
    return running.new_inbox("support", "Support")


def send(running: House, inbox_id: str, to: str, subject: str, **more: Any) -> str:
    body = {"to": to, "subject": subject, "body": "Hello", **more}
    sent = ask(
        running, "POST", f"/v1/inboxes/{inbox_id}/send", body, {"Idempotency-Key": subject.replace(" ", "-")}
    )
    message_id: str = sent["id"]
    return message_id


def wait_for(is_so: Callable[[], bool]) -> None:
    wait_until(is_so)


def status_of(running: House, message_id: str) -> str:
    status: str = running.api.get(f"/v1/messages/{message_id}").json()["status"]
    return status


def test_no_program_is_said_to_be_free_to_answer_what_is_malicious(
    running: House, open_page: Open, support: str
) -> None:
    running.deliver(trick().as_bytes(), "support")
    page = open_page(f"/app/mail?inboxId={support}")
    page.get_by_role("link", name=re.compile("New bank details")).click()
    expect(page.locator(".verdict.red")).to_contain_text("Malicious")
    signs = page.locator(".words .state")
    expect(signs.filter(has_text="No automatic reply")).to_be_visible()
    expect(signs.filter(has_text="Automatic reply allowed")).to_have_count(0)


def found(running: House, query: str) -> set[str]:
    """What the index has by now: a page of results shows what it had when it was opened."""
    answer = running.api.get("/v1/search", params={"q": query, "limit": 100}).json()
    return {each["message"]["id"] for each in answer["data"]}


def test_what_is_kept_here_is_not_shown_as_sent(running: House, open_page: Open, support: str) -> None:
    message_id = send(running, support, "carol@there.example", "Kept")
    wait_for(lambda: status_of(running, message_id) == "sent")
    message = open_page(f"/app/messages/{message_id}").locator(".message.outbound")
    expect(message.get_by_text("Captured, not sent")).to_be_visible()
    expect(message.locator(".state.green")).to_have_count(0)


def test_a_bounce_is_called_one_and_its_reason_stands_on_the_first_tab(
    running: House, open_page: Open, support: str
) -> None:
    bounced = send(running, support, f"bounce@{SIMULATOR}", "Comes back")
    refused = send(running, support, f"full@{SIMULATOR}", "Is refused")
    wait_for(lambda: {status_of(running, each) for each in (bounced, refused)} == {"failed"})
    page = open_page(f"/app/messages/{bounced}")
    message = page.locator(".message.outbound")
    expect(message.locator(".head .state")).to_have_text("bounced")
    expect(message.get_by_text(re.compile("Bounced:.*User unknown"))).to_be_visible()
    page.goto(f"{running.base_url}/app/messages/{refused}")
    expect(message.locator(".head .state")).to_have_text("failed")
    expect(message.get_by_text(re.compile("Failed:.*full@.*The mailbox is full"))).to_be_visible()
    wait_for(lambda: {bounced, refused} <= found(running, "is:failed"))
    page.goto(f"{running.base_url}/app/search?q=is:failed")
    expect(page.get_by_role("link", name=re.compile("Comes back")).locator(".state.red")).to_have_text(
        "bounced"
    )
    expect(page.get_by_role("link", name=re.compile("Is refused")).locator(".state.red")).to_have_text(
        "failed"
    )


def test_nothing_is_green_that_did_not_happen(running: House, open_page: Open, support: str) -> None:
    ask(running, "POST", "/v1/domains", {"domain": "mail.harbour.example"})
    ask(running, "PUT", "/v1/webhook", {"url": "http://127.0.0.1:9/hooks"})
    running.deliver(raw_mail(subject="For the webhook"), "support")
    wait_for(lambda: has_answers(running))
    page = open_page("/app/start")
    for title in ("Set up a webhook", "Add your domain"):
        step = page.locator(".step", has_text=title)
        expect(step).to_be_visible()
        expect(step).not_to_have_class(re.compile("done"))
    page.goto(f"{running.base_url}/app/webhooks")
    expect(page.locator("main .sheet .head .state").first).to_have_text("failing")
    assert not IDS.search(page.locator("#deliveries").inner_text())
    expect(page.locator("#deliveries tr", has_text="message.received").first).to_contain_text(
        "no connection to 127.0.0.1"
    )
    page.goto(f"{running.base_url}/app/settings/domains")
    own = page.locator("section", has_text="mail.harbour.example").first
    expect(own.get_by_text("not verified yet")).to_be_visible()
    expect(own.locator(".state.green")).to_have_count(0)


def has_answers(running: House) -> bool:
    """Of each webhook's delivery, that it did not arrive."""
    found = running.api.get("/v1/webhook/deliveries").json()["data"]
    answers = [attempt["answer"] for each in found for attempt in each["attempts"]]
    return bool(answers) and all(answers)


def test_an_event_says_who_wrote_what_to_which_inbox_and_when(
    running: House, open_page: Open, support: str
) -> None:
    running.deliver(raw_mail(subject="Minutes of Monday"), "support")
    page = open_page("/app/events")
    row = page.locator("[data-row]", has_text="Minutes of Monday").first
    expect(row).to_contain_text("Alice <alice@example.com>")
    expect(row).to_contain_text("support@postroom.localhost")
    expect(row.locator("time")).to_have_text(re.compile(r"\d:\d\d:\d\d"))
    expect(row.locator(".state")).to_have_text("received")
    payload = page.locator("[data-row]:has-text('Minutes of Monday') + tr pre").first
    expect(payload).to_be_hidden()
    row.get_by_text("Details").click()
    expect(payload).to_be_visible()


def test_the_audit_log_has_names_and_no_ids(running: House, open_page: Open, support: str) -> None:
    ask(running, "POST", f"/v1/inboxes/{support}/api-keys", {"name": "night agent"})
    pod = ask(running, "POST", "/v1/pods", {"name": "Harbour View"})
    ask(running, "PATCH", f"/v1/pods/{pod['id']}", {"name": "Harbour View West"})
    page = open_page("/app/settings/audit")
    shown = page.locator("#rows").inner_text()
    assert "night agent" in shown
    assert "Harbour View" in shown
    assert not IDS.search(shown)
    rows = page.locator("tbody tr:not(.unfolded)")
    assert rows.evaluate_all("rows => Math.max(...rows.map(row => row.offsetHeight))") < 40
    page.get_by_label("Inbox", exact=True).select_option("support@postroom.localhost")
    expect(page.locator("#rows")).not_to_contain_text("Harbour View")
    expect(rows.first).to_contain_text("night agent")
    page.get_by_label("Action").select_option("Key created")
    actors = page.get_by_label("Person or key")
    actors.select_option(actors.locator("option", has_text="first key").get_attribute("value"))
    expect(rows.first).to_contain_text("night agent")
    rows.first.get_by_text("Details").click()
    expect(page.locator(".unfolded").first).to_contain_text("API key")


def test_a_refused_form_stays_with_what_was_typed(running: House, open_page: Open, support: str) -> None:
    page = open_page("/app/inboxes")
    page.get_by_label("Name", exact=True).fill("support")
    page.get_by_label("Display name").fill("Another one")
    page.get_by_role("button", name="Create inbox").click()
    expect(page.get_by_role("heading", name="Inboxes")).to_be_visible()
    expect(page.get_by_label("Display name")).to_have_value("Another one")
    wrong = page.get_by_label("Name", exact=True)
    expect(wrong).to_be_focused()
    reason = page.locator("form .alert")
    expect(reason).to_be_in_viewport()
    expect(wrong).to_have_accessible_description(reason.inner_text().strip())
    running.new_inbox("second")
    page.goto(f"{running.base_url}/app/compose")
    expect(page.get_by_label("From")).to_have_value("")
    page.get_by_label("To", exact=True).fill("carol@there.example")
    page.get_by_label("Subject").fill("Chosen")
    page.get_by_label("Text").fill("Hello")
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.get_by_label("From")).to_be_focused()
    page.get_by_label("From").select_option(support)
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.get_by_role("status").filter(has_text="10 seconds")).to_be_visible()
    page.goto(f"{running.base_url}/app/compose")
    expect(page.get_by_label("From")).to_have_value(support)


def test_a_narrow_window_has_five_pages_more_in_a_menu_and_the_list_of_settings_folded(
    open_page: Open,
) -> None:
    page = open_page("/app/inboxes", viewport={"width": 390, "height": 844})
    bar = page.get_by_role("navigation", name="Pages")
    expect(bar.get_by_role("link")).to_have_text([re.compile(word) for word in BAR])
    bar.get_by_text("More").click()
    expect(bar.get_by_role("link", name="Webhooks")).to_be_in_viewport()
    settings = page.get_by_role("navigation", name="Settings")
    expect(settings.get_by_role("link", name="Domains")).to_be_hidden()
    settings.locator("summary").click()
    settings.get_by_role("link", name="Domains").click()
    expect(page.get_by_role("heading", name="Domains")).to_be_visible()


def test_what_a_pause_holds_stays_with_the_drafts_and_asks_nobody(
    running: House, open_page: Open, support: str
) -> None:
    moment = to_iso(running.clock.now() + HOUR)
    planned = send(running, support, "carol@there.example", "At its hour", sendAt=moment)
    ask(running, "PUT", "/v1/pause", None)
    send(running, support, "carol@there.example", "While it lasts")
    page = open_page("/app/drafts")
    expect(page.locator("tr", has_text="At its hour")).to_contain_text("paused")
    expect(page.locator("tr", has_text="While it lasts")).to_contain_text("paused")
    expect(page.locator("#rail a", has_text="Approvals").locator(".count")).to_have_count(0)
    page.get_by_role("button", name="Resume sending").click()
    expect(page.locator("tr", has_text="While it lasts")).to_have_count(0)
    expect(page.locator("tr", has_text="At its hour")).not_to_contain_text("paused")
    assert "paused" not in running.api.get(f"/v1/messages/{planned}").json()["hold"]["reasons"]


def test_the_default_pod_has_a_name_and_swaks_the_port_that_is_open(running: House, open_page: Open) -> None:
    ask(running, "POST", "/v1/pods", {"name": "Second"})
    empty = running.new_inbox("empty")
    page = open_page(f"/app/mail?inboxId={empty}")
    expect(page.get_by_text(f"swaks --server 127.0.0.1:{running.smtp_port} ")).to_be_visible()
    options = page.get_by_label("Pod").locator("option").all_inner_texts()
    assert "Default pod" in [option.strip() for option in options]
    assert not any(IDS.search(option) for option in options)


def test_a_reviewer_decides_by_a_link_that_was_captured(running: House, open_page: Open) -> None:
    inbox_id = running.new_inbox("reviewed")
    rule = {"when": ["always"], "reviewers": ["boss@there.example"]}
    running.api.patch(f"/v1/inboxes/{inbox_id}", json={"approval": rule})
    message_id = send(running, inbox_id, "ann@there.example", "Reviewed here")
    running.api.post("/v1/users", json={"email": "carol@there.example", "role": "viewer"})
    page = open_page("/app/operator/captured")
    notice = page.get_by_role("listitem").filter(has_text="To approve: Reviewed here")
    invitation = page.get_by_role("listitem").filter(has_text="To carol@there.example")
    for each in (notice, invitation):
        wait_for(lambda: page.reload() is not None and each.count() == 1)  # noqa: B023
    assert "/app/sign-in?invitation=" in (
        invitation.get_by_role("link", name="Open its link").get_attribute("href") or ""
    )
    notice.get_by_role("link", name="Open its link").click()
    page.get_by_role("button", name="Approve and send").click()
    expect(page.get_by_text("Approved. The email is sent now.")).to_be_visible()
    hold = running.api.get(f"/v1/messages/{message_id}").json()["hold"]
    assert hold["decidedBy"]["id"] == "boss@there.example"


def test_two_keys_of_one_name_are_told_apart_and_a_new_email_asks_for_its_inbox_or_takes_the_last(
    running: House, open_page: Open, support: str
) -> None:
    keys = [
        running.api.post("/v1/api-keys", json={"name": "twin", "inboxId": support}).json()["last4"]
        for _ in range(2)
    ]
    page = open_page("/app/agents")
    twins = page.get_by_role("row", name="twin")
    expect(twins).to_have_count(2)
    for last4 in keys:
        expect(twins.filter(has_text=last4)).to_have_count(1)
    other = running.new_inbox("lastly")
    page.goto(f"{running.base_url}/app/compose")
    assert page.get_by_label("From").input_value() in ("", support)
    page.get_by_label("From").select_option(value=other)
    page.get_by_label("To", exact=True).fill("ann@there.example")
    page.get_by_label("Subject").fill("Hello")
    page.get_by_label("Text").fill("Hi.")
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.get_by_text("Sending in 10 seconds.")).to_be_visible()
    page.goto(f"{running.base_url}/app/compose")
    expect(page.get_by_label("From")).to_have_value(other)
