"""postroom notifications: targets are added one by one, changed and removed."""

from tests.client.live import Shell


def test_targets_are_added_changed_listed_and_removed(shell: Shell) -> None:
    nobody = shell.run("notifications", "list", "--no-json")
    assert "No targets yet" in nobody.stderr
    shell.json("notifications", "add", "email", "ann@example.org")
    url = "http://127.0.0.1:9/hook"
    shell.json("notifications", "add", "webhook", url, "--on", "paused", "--on", "suspicious")
    found = shell.json("notifications", "add", "email", "ann@example.org", "--on", "domain_broken")
    told = [(each["kind"], each["target"], each["on"]) for each in found["targets"]]
    assert told == [
        ("webhook", url, ["paused", "suspicious"]),
        ("email", "ann@example.org", ["domain_broken"]),
    ]
    at = ("--on", "briefing", "--hour", "7", "--time-zone", "Europe/Berlin")
    shell.json("notifications", "add", "email", "ann@example.org", *at)
    found = shell.json("notifications", "add", "webhook", url, "--on", "paused")  # keeps the other's hour
    assert [(each["briefingHour"], each["timeZone"]) for each in found["targets"]] == [
        (7, "Europe/Berlin"),
        (8, "UTC"),
    ]
    whole = shell.json("notifications", "add", "teams", "http://127.0.0.1:9/teams", "--whole")
    assert [each["content"] for each in whole["targets"]] == ["subject", "subject", "email"]
    shell.json("notifications", "remove", "http://127.0.0.1:9/teams")
    shown = shell.run("notifications", "list", "--no-json")
    assert "nothing sent yet" in shown.stdout
    assert shell.run("notifications", "add", "email", "ann@example.org", "--on", "never").exit_code == 1
    assert [each["kind"] for each in shell.json("notifications", "remove", url)["targets"]] == ["email"]
    gone = shell.run("notifications", "remove", url, "--no-json")
    assert gone.exit_code == 1
    assert "is not a target" in gone.stderr
    assert shell.json("notifications", "remove", "ann@example.org") == {"targets": []}
