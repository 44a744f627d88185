"""schemathesis reads the description that the server gives out and tries to catch the server breaking it.

Each part asks an eighth of the operations. POSTROOM_TEST_EXAMPLES sets how many requests of its invention
each operation gets.
"""

import asyncio
import json
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from postroom.assembly import serving
from postroom.clock import SECOND
from postroom.web.interface import openapi
from postroom.web.routes import ROUTES
from postroom.web.routing import Route
from postroom_mail.authentication import dkim
from tests.conftest import settings
from tests.doubles import RushingClock
from tests.mail.keys import signing_key

ROOT = Path(__file__).parents[2]
PARTS = 8
SEED = 20_261_114
EXAMPLES = os.environ.get("POSTROOM_TEST_EXAMPLES", "3")

# What an address, a domain, a URL, a pod or a question is, which of them an account may use and which moment
# lies ahead is more than a schema says: these may refuse what it allows. A long poll would outlast the run.
CONFIGURATION = """
[[operations]]
include-name = [
  "POST /v1/inboxes", "POST /v1/domains", "POST /v1/suppressions", "POST /v1/inboxes/{inbox_id}/send",
  "PATCH /v1/inboxes/{inbox_id}", "PUT /v1/webhook", "POST /v1/webhook/test",
  "POST /v1/inboxes/{inbox_id}/webhook/test", "POST /v1/inboxes/{inbox_id}/webhook/rotate-secret",
  "POST /v1/api-keys", "PATCH /v1/api-keys/{key_id}", "POST /v1/inboxes/{inbox_id}/api-keys",
  "POST /v1/pods/{pod_id}/api-keys", "PATCH /v1/account", "POST /v1/pods", "PATCH /v1/pods/{pod_id}",
  "PUT /v1/policy", "POST /v1/policy/rules", "GET /v1/inboxes/{inbox_id}/wait",
  "GET /v1/search", "GET /v1/usage", "GET /v1/domains/{domain_id}/reports",
  "POST /v1/inboxes/{inbox_id}/drafts", "PATCH /v1/drafts/{draft_id}",
  "POST /v1/drafts/{draft_id}/attachments", "POST /v1/drafts/{draft_id}/send",
  "PATCH /v1/messages/{message_id}", "POST /v1/users", "PATCH /v1/users/{user_id}", "POST /v1/connections",
  "PATCH /v1/connections/{connection_id}", "POST /v1/webhooks", "PATCH /v1/webhooks/{webhook_id}",
  "PUT /v1/notifications", "PATCH /v1/domains/{domain_id}", "PATCH /v1/threads/{thread_id}",
  "POST /v1/feedback", "POST /v1/uploads",
  "POST /v1/calendars", "PATCH /v1/calendars/{calendar_id}", "POST /v1/calendars/{calendar_id}/import",
  "GET /v1/calendar-events", "POST /v1/calendar-events", "PATCH /v1/calendar-events/{calendar_event_id}",
  "DELETE /v1/calendar-events/{calendar_event_id}", "POST /v1/calendar-events/{calendar_event_id}/respond",
  "GET /v1/free-busy", "POST /v1/find-times", "GET /v1/briefing", "POST /v1/rules/import",
  "POST /v1/inboxes/{inbox_id}/aliases", "POST /v1/junk/examples",
  "POST /v1/rules", "PATCH /v1/rules/{rule_id}", "POST /v1/rules/test", "POST /v1/templates",
]
checks.positive_data_acceptance.enabled = false

# Each field of their bodies is asked for where the same body has its first operation: keys of an account, and
# new drafts. What is invented for every operation is sent to these too.
[[operations]]
include-name = [
  "POST /v1/inboxes/{inbox_id}/api-keys", "POST /v1/pods/{pod_id}/api-keys", "PATCH /v1/drafts/{draft_id}",
]
phases.coverage.enabled = false

# To find out whether a long text of this pattern exists takes schemathesis two seconds.
[[operations]]
include-name = "POST /v1/feedback"
phases.fuzzing.enabled = false

[phases.coverage]
unexpected-methods = ["DELETE", "PUT"]

[[operations]]
include-name = "GET /v1/events"
parameters = { wait = 0 }

[[operations]]
include-name = "GET /v1/inboxes/{inbox_id}/wait"
parameters = { timeout = 0 }
"""


# What is no body is read in one place for all operations: requests are invented for the first of those alike.
# An odd id is tried at each of them by `tests/api/test_odd_values.py`.
ALIKE = """
[[operations]]
include-name = {names}
phases.fuzzing.enabled = false
"""
OF_ANOTHER_PART = """
[[operations]]
include-name = {names}
enabled = false
"""


def names_of(routes: Iterable[Route]) -> str:
    return json.dumps([route.name for route in routes])


def with_parameters_of_another(routes: list[Route]) -> Iterator[Route]:
    """Operations without a body that are asked for with as many ids and the same query as one before them."""
    known = set()
    for route in routes:
        parameters = (route.path.count("{"), route.query, route.header)
        if route.body is None and parameters in known:
            yield route
        known.add(parameters)


def configuration_for(part: int) -> str:
    described = [route for route in ROUTES if route.path not in openapi.UNLISTED]
    asked = described[part::PARTS]
    others = names_of(route for route in described if route not in asked)
    alike = names_of(with_parameters_of_another(asked))
    return CONFIGURATION + ALIKE.format(names=alike) + OF_ANOTHER_PART.format(names=others)


async def run_schemathesis(base_url: str, token: str, folder: Path) -> tuple[int | None, str]:
    options = [
        f"--header=Authorization: Bearer {token}",
        "--phases=examples,coverage,fuzzing",
        f"--max-examples={EXAMPLES}",
        f"--seed={SEED}",
        "--no-shrink",
        "--continue-on-failure",
        "--generation-database=none",
        "--no-color",
        "--warnings=off",
        "--request-timeout=120",  # it would give up after 10 seconds
        "--suppress-health-check=too_slow",
    ]
    path = os.pathsep.join((str(ROOT), os.environ["PYTHONPATH"]))
    process = await asyncio.create_subprocess_exec(
        *[sys.executable, "-m", "schemathesis.cli", "run", f"{base_url}/openapi.json", *options],
        cwd=folder,
        env=os.environ | {"SCHEMATHESIS_HOOKS": "tests.end_to_end.schemathesis_hooks", "PYTHONPATH": path},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    return process.returncode, output.decode()


@pytest.mark.share(PARTS)
@pytest.mark.parametrize("part", range(PARTS))
async def test_the_server_does_what_its_description_says(
    part: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock rushes, so that neither the limit of a minute nor that of a day is reached."""
    (tmp_path / "schemathesis.toml").write_text(configuration_for(part))
    key = signing_key()
    monkeypatch.setattr(dkim, "generate_key", lambda: key)  # a tenth of a second each
    async with serving(settings(tmp_path), RushingClock(step=900 * SECOND), make_key=signing_key) as postroom:
        assert postroom.first_token is not None
        base_url = postroom.resources.config.base_url
        status, report = await run_schemathesis(base_url, postroom.first_token, tmp_path)
    assert status == 0, report
