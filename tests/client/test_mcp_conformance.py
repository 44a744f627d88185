"""The official conformance suite of MCP misses nothing but the demo tools of a server for tests."""

import re
from pathlib import Path

import pytest

from tests.client import conformance
from tests.client.live import API_KEY, LiveServer

pytestmark = pytest.mark.sqlite_alone
needs_suite = pytest.mark.needs("node", "generators of clients")

# Scenarios that call tools, prompts or resources with fixed names, such as test_image_content.
OF_DEMOS = {
    *("completion-complete", "json-schema-2020-12", "http-custom-header-server-validation"),
    *(
        "prompts-get-simple",
        "prompts-get-with-args",
        "prompts-get-embedded-resource",
        "prompts-get-with-image",
    ),
    *("resources-read-text", "resources-read-binary", "resources-templates-read"),
    *("tools-call-image", "tools-call-audio", "tools-call-embedded-resource", "tools-call-mixed-content"),
    *("tools-call-with-progress", "input-required-result-basic-elicitation"),
    *("input-required-result-basic-sampling", "input-required-result-basic-list-roots"),
    *("input-required-result-request-state", "input-required-result-multiple-input-requests"),
    *("input-required-result-multi-round", "input-required-result-non-tool-request"),
    *("input-required-result-result-type", "input-required-result-tampered-state"),
    *("input-required-result-capability-check", "server-stateless"),
}
# Scenarios of headers and status codes.
OF_HTTP = {"dns-rebinding-protection", "http-header-validation", "server-stateless"}
# Of a scenario that is mostly passed, the checks of a demo tool.
OF_DEMO_TOOLS = {"sep-2575-server-rejects-undeclared-capability", "sep-2575-missing-capability-http-400"}


@pytest.mark.share(3)
@needs_suite
def test_mcp_over_http_conforms_to_the_revision(live: LiveServer, tmp_path: Path) -> None:
    with conformance.with_key(live.base_url, API_KEY) as url:
        found = conformance.run(url, tmp_path)
    failed = {name for name, checks in found.items() if checks and not name.startswith("tasks-")}
    assert failed <= OF_DEMOS, {name: found[name] for name in failed - OF_DEMOS}
    assert set(found["server-stateless"]) <= OF_DEMO_TOOLS
    assert {"tools-list", "dns-rebinding-protection", "http-header-validation", "caching"} <= found.keys()


@pytest.mark.share(3)
@needs_suite
def test_the_local_server_conforms_to_the_revision(live: LiveServer, tmp_path: Path) -> None:
    settings = {"POSTROOM_API_KEY": API_KEY, "POSTROOM_BASE_URL": live.base_url}
    with conformance.of_command(["-m", "postroom_client", "mcp"], settings) as url:
        found = conformance.run(url, tmp_path)
    failed = {name for name, checks in found.items() if checks and not name.startswith("tasks-")}
    assert failed <= OF_DEMOS | OF_HTTP, {name: found[name] for name in failed - OF_DEMOS}


@needs_suite
def test_the_skill_is_listed_and_read_as_its_extension_says(live: LiveServer, tmp_path: Path) -> None:
    with conformance.with_key(live.base_url, API_KEY) as url:
        name = "sep-2640-skills-enumeration"
        asked = ("--scenario", name, "--spec-version", conformance.REVISION, "--force")
        assert conformance.run(url, tmp_path, *asked) == {name: []}
    told = "".join(file.read_text() for file in tmp_path.rglob("checks.json"))
    assert told.count('"SUCCESS"') > 20
    assert '"SKIPPED"' not in told


def test_the_skill_names_tools_and_fields_that_there_are() -> None:
    from postroom_client.mcp import server, skills  # to load them takes a second of every worker

    named = set(re.findall(r"`([a-z]+_[a-z_]+)`", skills.SKILL))
    fields = {"unread_only", "idempotency_key", "is_held"}
    assert named - fields <= set(server.SETS[server.MAIL])
    assert len(named - fields) > 10
    written = dict(line.split(": ", 1) for line in skills.SKILL.split("---\n")[1].splitlines())
    assert written == skills.entry()["frontmatter"]
