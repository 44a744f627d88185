"""Loaded by schemathesis: of values that many operations describe alike, most are tried at the first of them.

A field or a parameter gets every value at the first operation that has it as it is described there; at the
others one that is allowed, and one that is not. Where one of another name was described alike, it gets one
value of each kind: of all wrong types, one.
"""

import gc
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import schemathesis
from hypothesis import configuration
from schemathesis.config import ProjectConfig
from schemathesis.generation.meta import CoveragePhaseData
from schemathesis.transport.requests import SameHostRedirectsSession

# It would look for proxies and for a `.netrc` before each request.
SameHostRedirectsSession.trust_env = property(lambda self: False, lambda self, value: None)  # type: ignore[assignment]
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

FIELD = re.compile(r"(?:Object with valid '(\w+)' value|(\w+)(?: ->|:))")
_first: dict[tuple[object, ...], str] = {}  # the operation where a value of a field was tried first
_tried: set[tuple[object, ...]] = set()


@schemathesis.hook
def filter_case(context: schemathesis.HookContext, case: "schemathesis.Case[Any]") -> bool:
    meta = case.meta  # which reads all of the case again each time
    data = meta.phase.data if meta else None
    if meta is None or not isinstance(data, CoveragePhaseData):
        return True
    found = described_as(case, data)
    if found is None:
        return True
    name, described, kind = found
    label = case.operation.label
    here: tuple[object, ...] = (label, *found)
    if _first.setdefault((name, described, data.description), label) != label:
        here = (label, name, described, meta.generation.mode)
    elif _first.setdefault((described, kind), name) == name:
        return True
    is_new = here not in _tried
    _tried.add(here)
    return is_new


def described_as(case: "schemathesis.Case[Any]", data: CoveragePhaseData) -> tuple[str, str, str] | None:
    """The name and the schema of the one field or parameter that this case is about, and what is tried."""
    definition: Any = case.operation.definition.raw
    found = FIELD.match(data.description)
    if data.parameter_location == "body" and found and case.media_type:
        schema = definition["requestBody"]["content"][case.media_type]["schema"]
        if "$ref" in schema:
            schema = case.operation.schema.raw_schema["components"]["schemas"][schema["$ref"].split("/")[-1]]
        name = found[1] or found[2]
        field = schema.get("properties", {}).get(name)
        return as_text(case.media_type, name, field, data.description[found.end() :])
    if data.parameter_location in ("query", "header") and data.parameter:
        named = {each.get("name"): each.get("schema") for each in definition.get("parameters", [])}
        return as_text(data.parameter_location, data.parameter, named.get(data.parameter), data.description)
    return None


def as_text(place: str, name: str, schema: dict[str, Any] | None, kind: str) -> tuple[str, str, str] | None:
    return None if schema is None else (name, json.dumps([place, bare(schema)]), kind)


def bare(schema: Any) -> Any:
    """Without what says nothing of its values."""
    if isinstance(schema, list):
        return [bare(each) for each in schema]
    if isinstance(schema, dict):
        return {word: bare(value) for word, value in schema.items() if word not in FOR_READERS}
    return schema
