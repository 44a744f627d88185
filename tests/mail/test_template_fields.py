"""Fields of templates: found, asked for, filled in once and as text."""

import pytest

from postroom_mail.writing import template_fields
from postroom_mail.writing.template_fields import FieldError
from tests.samples import samples


def test_fields_are_named_once_each_in_their_order() -> None:
    texts = ("Order {{order}}", "Hello {{ name }}, {{order}} of {{day.of-week_2}}", "")
    assert template_fields.names_in(texts) == ["order", "name", "day.of-week_2"]


@samples(
    "text", ["{{}}", "{{ }}", "{{7}}", "{name}", "{{a b}}", "{{  name}}", "{{na\nme}}", f"{{{{{'a' * 65}}}}}"]
)
def test_what_is_no_field_stays_as_it_is(text: str) -> None:
    assert template_fields.names_in([text]) == []
    assert template_fields.fill(text, {}, 1000) == text


def test_a_value_is_put_in_once_and_names_no_field_itself() -> None:
    values = {"a": "{{b}}", "b": "{{a}}"}
    assert template_fields.fill("{{a}}{{b}}{{{a}}}", values, 1000) == "{{b}}{{a}}{{{b}}}"


def test_a_value_is_text_in_html() -> None:
    filled = template_fields.fill("<p>{{a}}</p>", {"a": "<b>&\"'\r\nx"}, 1000, is_html=True)
    assert filled == "<p>&lt;b&gt;&amp;&quot;&#x27;<br>\nx</p>"
    assert template_fields.fill("{{a}}", {"a": "<b>"}, 1000) == "<b>"


def test_every_field_wants_a_value_which_may_be_empty() -> None:
    template_fields.require_all(["a"], {"a": "", "unused": "x"})
    with pytest.raises(FieldError, match="a, b"):
        template_fields.require_all(["a", "c", "b"], {"c": ""})


def test_what_grows_beyond_the_limit_is_refused_before_it_is_put_together() -> None:
    assert len(template_fields.fill("{{a}}" * 10, {"a": "x" * 10}, 100)) == 100
    with pytest.raises(FieldError):
        template_fields.fill("{{a}}" * 10, {"a": "x" * 10}, 99)
    with pytest.raises(FieldError):
        template_fields.fill("{{a}}" * 20_000, {"a": "x" * 10_000}, 100_000)
