"""Loaded by schemathesis: of values that many operations describe alike, most are tried at the first of them.

A field or a parameter gets every value at the first operation that has it as it is described there; at the
others one that is allowed, and one that is not. Where one of another name was described alike, it gets one
value of each kind. Every wrong type is tried at the first field of its right types, and one at the others.
"""

import gc
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import requests
import schemathesis
from hypothesis import configuration
from schemathesis.config import ProjectConfig
from schemathesis.generation.hypothesis.examples import generate_many
from schemathesis.generation.meta import CoveragePhaseData
from schemathesis.specs.openapi.coverage import _schema as coverage
from schemathesis.transport.requests import SameHostRedirectsSession


def send_as_prepared(
    self: requests.Session, method: str, url: str, *, stream: bool, timeout: float, **others: Any
) -> requests.Response:
    """Without looking for proxies, a `.netrc`, cookies and redirects, of which there are none."""
    prepared = requests.PreparedRequest()
    for option in ("verify", "cert", "proxies", "allow_redirects"):
        others.pop(option, None)
    prepared.prepare(method, url, **others)
    return self.get_adapter(url).send(prepared, stream=stream, timeout=timeout)


SameHostRedirectsSession.request = send_as_prepared  # type: ignore[assignment, method-assign]
# An array that is too long is one valid item repeated, which breaks its maximum alone; it would mix items of
# the longest and wrong ones.
coverage.NEGATIVE_MODE_MAX_ITEMS = 1000
# It would try to run out of values that are in no enumeration.
outside_enumerations = tuple(generate_many(coverage.INVALID_ENUM_STRATEGY, 20))
coverage._invalid_enum_candidates = lambda: outside_enumerations  # type: ignore[assignment]
configuration.set_hypothesis_home_dir(Path(__file__).parents[2] / ".hypothesis")  # tables of all characters
gc.disable()  # nearly nothing that it makes is garbage


def once_for_an_operation(choose: Callable[..., object]) -> Callable[..., object]:
    chosen: dict[tuple[int, str, str | None], object] = {}

    def remembered(config: ProjectConfig, *, operation: Any = None, **phase: str) -> object:
        if operation is None:
            return choose(config, operation=None, **phase)
        key = (id(config), operation.label, phase.get("phase"))
        if key not in chosen:
            chosen[key] = choose(config, operation=operation, **phase)
        return chosen[key]

    return remembered


# It would put the configuration together anew for each case.
for _each in ("phases_for", "generation_for", "checks_config_for"):
    setattr(ProjectConfig, _each, once_for_an_operation(getattr(ProjectConfig, _each)))

FOR_READERS = {"description", "title", "examples", "default", "x-default"}

WRONG_TYPE = "Incorrect type"
ONCE = {
    "Object with unexpected properties",
    "Object with all required and a subset of optional properties",
}
FIELD = re.compile(r"Object with (?:valid|all required properties and) '(\w+)'(?: value)?|(\w+)(?: ->|:)")
OPTIONAL = re.compile(r"All required properties and optional '(\w+)'")

_first: dict[tuple[object, ...], str] = {}  # the operation or the field where a value was tried first
_tried: set[tuple[object, ...]] = set()


class Tried(NamedTuple):
    name: str  # of the one field or parameter that a case is about
    described: str
    kind: str  # of value


@schemathesis.hook
def filter_case(context: schemathesis.HookContext, case: "schemathesis.Case[Any]") -> bool:
    case.freeze_metadata()  # it would read all of the case again at each look
    meta = case.meta
    data = meta.phase.data if meta else None
    if meta is None or not isinstance(data, CoveragePhaseData):
        return True
    label = case.operation.label
    if data.parameter == "Content-Type":
        return is_new(data.description, *content_of(case))
    if data.description.startswith("Unspecified HTTP method"):
        return is_new(case.operation.path, "method")
    if data.description in ONCE:
        return is_new(label, case.media_type, data.description)
    tried = about(case, data)
    if tried is None:
        return True
    if _first.setdefault((*tried, data.description), label) != label:
        return is_new(label, tried.name, tried.described, meta.generation.mode)
    if tried.kind.endswith(f" {WRONG_TYPE}"):  # of a field inside of this one
        return is_new(label, *tried)
    is_first = _first.setdefault((alike(tried), tried.kind), tried.name) == tried.name
    return is_first or is_new(label, *tried)


def is_new(*what: object) -> bool:
    is_known = what in _tried
    _tried.add(what)
    return not is_known


def content_of(case: "schemathesis.Case[Any]") -> dict[str, Any]:
    """What kinds of bodies the operation takes, with their schemas."""
    definition: Any = case.operation.definition.raw
    content: dict[str, Any] = definition.get("requestBody", {}).get("content", {})
    return content


def about(case: "schemathesis.Case[Any]", data: CoveragePhaseData) -> Tried | None:
    if data.parameter_location == "body" and case.media_type:
        return about_body(case, case.media_type, data.description)
    if data.parameter_location not in ("query", "header"):
        return None
    optional = OPTIONAL.match(data.description)
    name = optional[1] if optional else data.parameter
    definition: Any = case.operation.definition.raw
    named = {each.get("name"): each.get("schema") for each in definition.get("parameters", [])}
    if name is None or name not in named:
        return None
    described = json.dumps([data.parameter_location, bare(named[name])])
    return Tried(name, described, data.description.removeprefix(f"{name}: "))


def about_body(case: "schemathesis.Case[Any]", media_type: str, description: str) -> Tried | None:
    if description == WRONG_TYPE:
        return Tried("", media_type, description)
    found = FIELD.match(description)
    if found is None:
        return None
    schema = content_of(case)[media_type]["schema"]
    if "$ref" in schema:
        schema = case.operation.schema.raw_schema["components"]["schemas"][schema["$ref"].split("/")[-1]]
    name = found[1] or found[2]
    if name not in schema.get("properties", {}):
        return None
    described = json.dumps([media_type, without_null(bare(schema["properties"][name]))])
    return Tried(name, described, description[found.end() :].removeprefix(" "))


def alike(tried: Tried) -> object:
    """What is a wrong type depends on nothing but the types that are right."""
    if tried.kind != WRONG_TYPE or not tried.name:
        return tried.described
    place, schema = json.loads(tried.described)
    return place, *sorted(types_of(schema))


def types_of(schema: dict[str, Any]) -> set[str]:
    if "anyOf" in schema:
        return {each for choice in schema["anyOf"] for each in types_of(choice)}
    return {schema.get("type", "object" if "$ref" in schema else "enum")}


def without_null(schema: dict[str, Any]) -> Any:
    """A field that may also be null, as those of a draft, is otherwise tried where it may not."""
    choices = [each for each in schema.get("anyOf", []) if each != {"type": "null"}]
    return choices[0] if len(choices) == 1 else {**schema, "anyOf": choices} if choices else schema


def bare(schema: Any) -> Any:
    """Without what says nothing of its values."""
    if isinstance(schema, list):
        return [bare(each) for each in schema]
    if isinstance(schema, dict):
        return {word: bare(value) for word, value in schema.items() if word not in FOR_READERS}
    return schema
