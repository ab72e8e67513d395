"""Values made up for a template have the shape in which it uses them."""

from __future__ import annotations

import pytest

from assay.prompty import loads
from assay.prompty.fabricate import fabricate


def made(body: str, front: str = "name: x") -> dict[str, object]:
    prompty = loads(f"---\n{front}\n---\n{body}")
    values = fabricate(prompty)
    assert prompty.render(values)
    return values


def test_text_is_the_rule() -> None:
    assert made("user:\n{{ question }}\n") == {"question": "text of question"}


def test_attributes_make_objects_and_loops_make_lists() -> None:
    body = "user:\n{% for d in docs %}{{ d.id }}{{ d['title'] }}{% endfor %}{{ who.name.first }}"
    assert made(body) == {
        "docs": [{"id": "text of docs.item.id", "title": "text of docs.item.title"}],
        "who": {"name": {"first": "text of who.name.first"}},
    }


@pytest.mark.parametrize(
    "body",
    [
        "user:\n{% if n > 3 %}x{% endif %}{{ n }}",
        "user:\n{{ n + 1 }}",
        "user:\n{% for i in range(n) %}x{% endfor %}",
        "user:\n{{ n | round }}",
    ],
)
def test_arithmetic_makes_numbers(body: str) -> None:
    assert made(body) == {"n": 1}


def test_conversations_have_roles() -> None:
    body = "system:\nx\n{% for m in history %}\n{{ m.role }}:\n{{ m.content }}\n{% endfor %}"
    assert made(body) == {"history": [{"role": "user", "content": "text of history.item.content"}]}


def test_sections_of_mustache_are_lists_of_objects() -> None:
    body = "user:\n{{#docs}}{{id}}: {{title}}\n{{/docs}}{{question}}"
    assert made(body) == {
        "docs": [{"id": "text of docs.item.id", "title": "text of docs.item.title"}],
        "question": "text of question",
    }


def test_the_files_own_values_come_first() -> None:
    front = "inputs:\n  a: {type: string, default: d}\n  b: {type: integer}\nsample:\n  b: 7"
    assert made("user:\n{{ a }}{{ b }}{{ c }}", front) == {"a": "d", "b": 7, "c": "text of c"}


def test_declared_types_fill_in_where_the_template_tells_nothing() -> None:
    types = {"a": "boolean", "b": "array", "c": "object", "t": "thread"}
    front = "inputs:" + "".join(f"\n  {name}: {{type: {kind}}}" for name, kind in types.items())
    assert made("user:\n{{ a }}{{ b }}{{ c }}\n{{ t }}\n", front) == {
        "a": True,
        "b": ["text of b"],
        "c": {"key": "text of c"},
        "t": [{"role": "user", "content": "text of t"}],
    }


def test_a_sample_that_cannot_be_rendered_gives_way() -> None:
    front = "sample:\n  docs: only text"
    body = "user:\n{% for d in docs %}{{ d.id }}{% endfor %}"
    assert made(body, front) == {"docs": [{"id": "text of docs.item.id"}]}
