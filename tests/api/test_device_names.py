"""Where somebody signed in, in words."""

from postroom.web.dashboard.display.people import device_of
from tests.samples import samples

AGENTS = [
    (
        "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko)"
        " Version/18.0 Mobile/15E148 Safari/604.1",
        "Safari on iPhone",
    ),
    (
        "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0"
        " Safari/537.36 Edg/130.0.0.0",
        "Edge on Windows",
    ),
    (
        "Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Mobile"
        " Safari/537.36",
        "Chrome on Android",
    ),
    (
        "Mozilla/5.0 (Macintosh; Intel Mac OS X 10.15; rv:132.0) Gecko/20100101 Firefox/132.0",
        "Firefox on Mac",
    ),
    ("curl/8.9.1", "curl/8.9.1"),
    ("x" * 300, "x" * 100),
    ("", "A browser"),
]


@samples(("agent", "named"), AGENTS)
def test_a_browser_is_named_as_its_owner_names_it(agent: str, named: str) -> None:
    assert device_of(agent) == named
