"""postroom inboxes …, in both forms."""

from collections.abc import Callable

from postroom_client import profiles
from postroom_client.results import Inbox
from tests.client.live import DOMAIN, Shell


def default_inbox() -> str | None:
    profile = profiles.load().find("local")
    assert profile is not None
    return profile.inbox_id


def test_create_prints_the_inbox_and_makes_the_first_one_the_default(shell: Shell) -> None:
    first = shell.run("inbox", "create", "cli-first", "--display-name", "First", "--no-json")
    assert f"cli-first@{DOMAIN}" in first.stdout
    assert "First" in first.stdout
    assert "is the default inbox" in first.stderr
    before = default_inbox()
    assert before is not None
    assert before in first.stdout
    second = shell.json("inbox", "create", "cli-second")
    assert second["address"] == f"cli-second@{DOMAIN}"
    assert default_inbox() == before
    third = shell.json("inbox", "create", "cli-third", "--default")
    assert default_inbox() == third["id"]


def test_create_with_a_foreign_key_leaves_the_profile_alone(shell: Shell) -> None:
    made = shell.run(
        "inbox", "create", "cli-elsewhere", "--profile", "local", POSTROOM_API_KEY="pr_" + "x" * 40
    )
    assert made.exit_code == 4
    assert default_inbox() is None


def test_list_shows_a_table_or_the_page(shell: Shell, inbox: Inbox) -> None:
    shell.json("inbox", "use", inbox.id)
    shown = shell.human("inbox", "list")
    line = next(line for line in shown.splitlines() if inbox.id in line)
    assert inbox.address in line
    assert "just now" in line
    assert "default" in line
    page = shell.json("inbox", "list", "--limit", "1")
    assert len(page["data"]) == 1
    assert page["total"] >= 1


def test_list_tells_that_there_is_more(shell: Shell, new_inbox: Callable[[], Inbox]) -> None:
    new_inbox(), new_inbox()
    assert "More: --offset" in shell.run("inbox", "list", "--limit", "1", "--no-json").stderr


def test_get_shows_one(shell: Shell, inbox: Inbox) -> None:
    assert inbox.address in shell.human("inbox", "get", inbox.id)
    assert shell.json("inbox", "get", inbox.id)["id"] == inbox.id


def test_update_changes_and_clears_the_name(shell: Shell, inbox: Inbox) -> None:
    assert "Renamed" in shell.human("inbox", "update", inbox.id, "--display-name", "Renamed")
    assert shell.json("inbox", "update", inbox.id, "--display-name", "")["displayName"] is None


def test_update_without_a_change_is_a_mistake_of_usage(shell: Shell, inbox: Inbox) -> None:
    result = shell.run("inbox", "update", inbox.id)
    assert result.exit_code == 2
    assert "--display-name" in result.stderr


def test_use_makes_an_inbox_the_default(shell: Shell, inbox: Inbox) -> None:
    assert inbox.address in shell.human("inbox", "use", inbox.id)
    assert default_inbox() == inbox.id


def test_delete_asks_for_a_yes_where_nobody_can_be_asked(shell: Shell, inbox: Inbox) -> None:
    refused = shell.run("inbox", "delete", inbox.id)
    assert refused.exit_code == 2
    assert "--yes" in refused.stderr
    assert shell.json("inbox", "get", inbox.id)["id"] == inbox.id


def test_delete_removes_the_inbox_and_the_default_with_it(
    shell: Shell, new_inbox: Callable[[], Inbox]
) -> None:
    one, other = new_inbox(), new_inbox()
    shell.json("inbox", "use", one.id)
    assert shell.json("inbox", "delete", one.id, "--yes") == {"id": one.id, "deleted": True}
    assert default_inbox() is None
    gone = shell.run("inbox", "delete", other.id, "--yes", "--no-json")
    assert (gone.exit_code, gone.stdout) == (0, "")
    assert "is deleted" in gone.stderr


def test_keys_of_an_inbox_are_made_listed_and_revoked(shell: Shell, inbox: Inbox) -> None:
    empty = shell.run("inbox", "keys", "list", inbox.id, "--no-json")
    assert "postroom inboxes keys create" in empty.stderr
    shown = shell.human("inbox", "keys", "create", inbox.id, "--name", "one")
    assert "pr_" in shown
    made = shell.json("inbox", "keys", "create", inbox.id, "--name", "two")
    listed = shell.human("inbox", "keys", "list", inbox.id)
    assert "never" in listed
    assert made["token"] not in listed
    assert shell.json("inbox", "keys", "list", inbox.id)["total"] == 2
    assert shell.json("inbox", "keys", "revoke", inbox.id, made["id"])["deleted"]
    first = shell.json("inbox", "keys", "list", inbox.id)["data"][0]["id"]
    revoked = shell.run("inbox", "keys", "revoke", inbox.id, first, "--no-json")
    assert "is revoked" in revoked.stderr


def test_an_alias_is_added_listed_sent_from_and_deleted(
    shell: Shell, inbox: Inbox, new_inbox: Callable[[], Inbox]
) -> None:
    alias, other = f"cli-alias@{DOMAIN}", new_inbox()
    assert shell.json("inboxes", "add-alias", inbox.id, alias)["address"] == alias
    assert alias in shell.human("inboxes", "aliases", inbox.address)
    for wanted, said in (
        (alias, "is already in use"),
        (other.address, "is already in use"),
        ("sales@elsewhere.example", "is not a verified domain"),
        ("nonsense", "is not an email address"),
    ):
        refused = shell.run("inboxes", "add-alias", inbox.id, wanted, "--no-json")
        assert (refused.exit_code, said in refused.stderr) == (1, True), refused.output
    assert [each["address"] for each in shell.json("inboxes", "aliases", inbox.id)["data"]] == [alias]

    order = ("send", "--to", "ann@example.com", "--inbox-id", inbox.id, "--subject", "Hi", "--body", "Hi")
    sent = shell.json(*order, "--from-address", alias)
    assert shell.json("messages", "get", sent["id"])["fromAddr"] == alias
    strange = shell.run(*order, "--from-address", other.address, "--no-json")
    assert (strange.exit_code, "or an alias of the inbox" in strange.stderr) == (1, True), strange.output

    assert shell.run("inboxes", "delete-alias", inbox.id, alias).exit_code == 0
    assert shell.json("inboxes", "aliases", inbox.id)["data"] == []
    gone = shell.run("inboxes", "delete-alias", inbox.id, alias, "--no-json")
    assert (gone.exit_code, "No such alias" in gone.stderr) == (1, True), gone.output
    assert shell.json("inboxes", "add-alias", other.id, alias)["address"] == alias
