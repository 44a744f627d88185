"""Profiles: one private file; flag over environment over file; a key goes only to its own server."""

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from postroom_client import profiles
from postroom_client.profiles import InvalidProfile, Profile, Profiles
from postroom_client.settings import DEFAULT_BASE_URL, Flags, resolve

LOCAL = "http://127.0.0.1:8025"
REMOTE = "https://post.example.com"


@pytest.fixture(autouse=True)
def _folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def test_without_a_file_there_is_the_default_server_and_no_key() -> None:
    found = resolve(Flags(), {})
    assert (found.base_url, found.api_key, found.inbox_id) == (DEFAULT_BASE_URL, None, None)


def test_the_file_is_its_owner_s_alone_also_when_it_is_replaced() -> None:
    for _ in range(2):
        profiles.save_local(LOCAL, "pr_1")
        place = profiles.file_path()
        assert stat.S_IMODE(place.stat().st_mode) == 0o600
        assert stat.S_IMODE(place.parent.stat().st_mode) == 0o700
    assert [path.name for path in place.parent.iterdir()] == ["profiles.json"]


def test_a_local_server_is_found_by_the_next_command() -> None:
    profiles.save_local(LOCAL, "pr_1")
    found = resolve(Flags(), {})
    assert (found.profile, found.base_url, found.api_key) == ("local", LOCAL, "pr_1")


def test_a_local_server_does_not_take_the_place_of_another_profile() -> None:
    profiles.save(Profiles().with_profile("work", Profile(REMOTE, "pr_work"), make_current=True))
    profiles.save_local(LOCAL, "pr_1")
    assert resolve(Flags(), {}).base_url == REMOTE
    assert resolve(Flags(profile="local"), {}).api_key == "pr_1"


def test_a_server_on_a_new_folder_keeps_the_profile_of_the_one_before_and_takes_another_name() -> None:
    profiles.save(Profiles().with_profile("local", Profile(LOCAL, "pr_1", "inb_1"), make_current=True))
    second = profiles.save_local(LOCAL, "pr_2")
    third = profiles.save_local("http://127.0.0.1:9000", "pr_3")
    assert (second.name, second.is_current) == ("local-2", True)  # whoever was at this address is gone
    assert (third.name, third.is_current) == ("local-3", False)
    assert profiles.load() == Profiles(
        "local-2",
        {
            "local": Profile(LOCAL, "pr_1", "inb_1"),
            "local-2": Profile(LOCAL, "pr_2"),
            "local-3": Profile("http://127.0.0.1:9000", "pr_3"),
        },
    )
    assert profiles.save_local(LOCAL, "pr_1").name == "local"
    assert profiles.load().find("local") == Profile(LOCAL, "pr_1", "inb_1")


def test_servers_that_start_together_all_keep_their_keys() -> None:
    tokens = [f"pr_{number}" for number in range(20)]
    with ThreadPoolExecutor(8) as threads:
        names = [saved.name for saved in threads.map(lambda token: profiles.save_local(LOCAL, token), tokens)]
    kept = profiles.load().profiles
    assert [kept[name].api_key for name in names] == tokens


def test_the_default_inbox_stays_while_server_and_key_stay() -> None:
    profiles.save(Profiles().with_profile("local", Profile(LOCAL, "pr_1", "inb_1"), make_current=True))
    profiles.save_local(LOCAL, "pr_1")
    assert resolve(Flags(), {}).inbox_id == "inb_1"
    profiles.save_local(LOCAL, "pr_2")
    assert resolve(Flags(), {}).inbox_id is None


def test_a_flag_wins_over_the_environment_and_that_over_the_file() -> None:
    profiles.save(Profiles().with_profile("local", Profile(LOCAL, "pr_file", "inb_file"), make_current=True))
    environment = {"POSTROOM_API_KEY": "pr_env", "POSTROOM_INBOX_ID": "inb_env"}
    assert resolve(Flags(), {}).api_key == "pr_file"
    assert resolve(Flags(), environment).api_key == "pr_env"
    assert resolve(Flags(), environment).inbox_id == "inb_env"
    assert resolve(Flags(api_key="pr_flag"), environment).api_key == "pr_flag"
    assert resolve(Flags(base_url=REMOTE), {"POSTROOM_BASE_URL": LOCAL}).base_url == REMOTE


def test_the_environment_names_a_profile() -> None:
    profiles.save(Profiles().with_profile("work", Profile(REMOTE, "pr_work"), make_current=False))
    assert resolve(Flags(), {"POSTROOM_PROFILE": "work"}).api_key == "pr_work"


def test_a_stored_key_is_never_sent_to_another_server() -> None:
    profiles.save(Profiles().with_profile("local", Profile(LOCAL, "pr_file", "inb_1"), make_current=True))
    found = resolve(Flags(base_url="http://evil.example.com"), {})
    assert (found.api_key, found.inbox_id) == (None, None)
    assert resolve(Flags(base_url=f"{LOCAL}/"), {}).api_key == "pr_file"


def test_an_unknown_profile_is_an_error_that_says_how_to_make_it() -> None:
    with pytest.raises(InvalidProfile, match="postroom login --profile work"):
        resolve(Flags(profile="work"), {})


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    profiles.save_local(LOCAL, "pr_1")
    place = profiles.file_path()
    place.write_bytes(b"\xff{")
    with pytest.raises(InvalidProfile, match=r"profiles\.json"):
        profiles.load()


def test_a_server_does_not_write_over_a_file_that_it_cannot_read() -> None:
    profiles.save_local(LOCAL, "pr_1")
    place = profiles.file_path()
    place.write_text("my own notes")
    with pytest.raises(OSError, match="cannot be read"):
        profiles.save_local(LOCAL, "pr_2")
    assert place.read_text() == "my own notes"


def test_a_profile_shows_no_key() -> None:
    assert "pr_secret" not in repr(Profile(LOCAL, "pr_secret")) + repr(
        Profiles("a", {"a": Profile(LOCAL, "pr_secret")})
    )
    assert "pr_secret" not in repr(resolve(Flags(api_key="pr_secret"), {})) + repr(Flags(api_key="pr_secret"))
