"""Hostile rows: a template that tells values from text keeps its messages, others are caught."""

from __future__ import annotations

import pytest

from assay.prompty import loads
from assay.prompty.check.attack import PAYLOADS, attack
from assay.prompty.check.finding import Collector
from tests.prompty.check.helpers import FRONT, metric

HISTORY = """system:
Be kind.
{% for m in history %}
{{ m.role }}:
{{ m.content }}
{% endfor %}
user:
{{ answer }}
"""


def run(text: str) -> tuple[int | None, list[str]]:
    found = Collector("x.prompty")
    outcome = attack(loads(text), found)
    return outcome.renders if outcome else None, [f.message for f in found.findings]


@pytest.mark.parametrize(
    "body",
    [
        "system:\nJudge.\nuser:\n{{ answer }}\n",
        "system:\nJudge.\nuser:\n```\n{{ answer }}\n```\n",
        "system:\n{{ answer | upper }}, {{ answer | tojson }}\nuser:\n{{ answer | truncate(9) }}\n",
        "system:\n{{ answer | length }} letters\nuser:\n{{ answer }}{{ answer }}\n",
        "system:\nx\nuser:\n{{#documents}}{{id}}: {{title}}\n{{/documents}}{{answer}}\n",
        "system:\nx\nuser:\n{% for d in docs %}{{ d.id }}: {{ d.title }}\n{% endfor %}{{answer}}",
        "system:\nx\nuser:\n![image]({{ picture }})\n{{ answer }}\n",
        HISTORY,
    ],
)
def test_messages_stay_what_the_template_makes_of_them(body: str) -> None:
    renders, messages = run(metric(body=body))
    assert messages == []
    assert renders is not None
    assert renders > len(PAYLOADS)


def test_every_input_is_attacked_alone_and_all_at_once() -> None:
    one, _ = run(metric(body="user:\n{{ answer }}\n"))
    two, _ = run(metric(body="user:\n{{ answer }}{{ question }}\n"))
    assert one == len(PAYLOADS) + 2
    assert two == 3 * len(PAYLOADS) + 4


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("system:\nx\n{% if '```' in answer %}\nuser:\n{% endif %}\n{{ answer }}\n", "messages"),
        ("user:\n{% if 'system:' in answer %}Look: {% endif %}{{ answer }}\n", "around"),
        ("user:\n{{ answer }}{% if answer | length > 90000 %} Long.{% endif %}\n", None),
    ],
)
def test_a_template_that_lets_values_decide_is_caught(body: str, says: str | None) -> None:
    _, messages = run(metric(body=body))
    if says is None:
        # The benign text is as long as the hostile one: length alone is no difference.
        assert messages == []
        return
    assert messages
    assert all("`answer`" in message for message in messages)
    assert any(says in message for message in messages)


def test_a_file_that_cannot_be_rendered_is_an_error() -> None:
    renders, messages = run(metric(body="user:\n{{ answer.strip.foo.bar }}\n"))
    assert renders is None
    assert len(messages) == 1
    renders, messages = run(metric(body="user:\n{{ 9 ** 9 ** 9 }}\n"))
    assert renders is None
    assert "hostile" in messages[0]


def test_a_template_without_inputs_has_nothing_to_attack() -> None:
    front = FRONT.replace("inputs:\n  answer:\n    type: string\n", "")
    assert run(metric(front, "user:\nhello\n")) == (0, [])
