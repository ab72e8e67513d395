"""Reading a metric.yaml: every mistake is found when it is loaded, with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.errors import PromptyError
from assay.metric.check import check_metric_file
from assay.metric.metricfile import load_metric
from assay.metric.registry import find, shipped
from assay.prompty.check.codes import CODES

ASK = """---
inputs:
  text: {type: string}
  items: {type: array, required: false}
outputs:
  found:
    type: array
    items:
      properties:
        index: {type: integer}
        verdict: {enum: [yes, no]}
---
system:
Reply with JSON.

user:
{{ text }}{% for item in items %} {{ item.index }}={{ item.text }}{% endfor %}
"""
SCORE = """---
inputs:
  text: {type: string}
outputs:
  score: {type: integer, minimum: 1, maximum: 5}
  loose: {type: integer, required: false}
---
system:
Reply with JSON: score from 1 to 5.

user:
{{ text }}
"""
HEAD = """description: d
inputs:
  response: {type: string}
outputs:
  good: {type: number, minimum: 0, maximum: 1, threshold: 0.5}
"""
WHOLE = (
    HEAD
    + """steps:
  - asked: {prompt: ask.prompty, in: {text: response}}
  - stop: {when: not asked.found, because: nothing was found}
  - worth: {map: asked.found, to: {yes: 1, no: 0}}
score: mean(worth)
"""
)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "good"
    folder.mkdir()
    (folder / "ask.prompty").write_text(ASK)
    (folder / "score.prompty").write_text(SCORE)
    (folder / "none.prompty").write_text("system:\nHello {{ text }}\n")
    return folder / "metric.yaml"


def test_a_metric(place: Path) -> None:
    place.write_text(WHOLE)
    metric = load_metric(place)
    assert metric.name == "good"
    assert metric.variant == "assay"
    assert metric.calls == "1"
    assert list(metric.inputs) == ["response"]
    assert [step.name for step in metric.steps] == ["asked", "stop 2", "worth"]
    assert not metric.needs_embedder
    assert metric.needs_judge
    assert check_metric_file(place) == []


def steps(*lines: str, score: str = "1") -> str:
    return HEAD + "steps:\n" + "".join(f"  - {line}\n" for line in lines) + f"score: {score}\n"


ASKED = "asked: {prompt: ask.prompty, in: {text: response}}"
MISTAKES = [
    # file, line, words of the message
    ("scores: 1\n", 1, "unknown key `scores`; known are name, description"),
    ("inputs: {}\nscore: 1\n", 1, "`inputs` must name at least one column"),
    ("inputs:\n  a: string\nscore: 1\n", 1, "`outputs` must declare the one number"),
    (
        HEAD.replace("type: number, minimum: 0, maximum: 1, threshold: 0.5", "type: string"),
        4,
        "`outputs` must declare the one number",
    ),
    (HEAD.replace("good: {", "good: {desirable_direction: sideways, "), 4, "sideways"),
    (HEAD.replace("response", "the response") + "score: 1\n", 3, "a name is one word"),
    (HEAD.replace("response", "mean") + "score: 1\n", 3, "has the name of a function"),
    (HEAD + "may_be_empty: [context]\nscore: 1\n", 6, "`may_be_empty` is a list of inputs"),
    (HEAD, 1, "an expression is missing"),
    (HEAD + "score: 1 +\n", 6, "not an expression"),
    (HEAD + "score: '{{ 1 }}'\n", 6, "not an expression"),
    (HEAD + "score: 1 2\n", 6, "not an expression"),
    (HEAD + "score: 1 | nofilter\n", 6, "not an expression"),
    (
        HEAD + "score: meen([1])\n",
        6,
        "meen: no input, no earlier step and no function; did you mean mean?",
    ),
    (HEAD + "score: other\n", 6, "there are response"),
    (HEAD + "score: 1\nreason: why\n", 7, "why: no input"),
    (HEAD + "steps: 3\nscore: 1\n", 6, "`steps` is a list"),
    (steps("asked"), 7, "a step is one `name: {...}`"),
    (steps("a: {value: 1}\n    b: {value: 2}"), 7, "a step is one `name: {...}`"),
    (steps("a: 3"), 7, "step `a` must be a mapping"),
    (steps("a: {valeu: 1}"), 7, "step `a` has none of prompt, map, split, join, embed, value"),
    (steps("a: {value: 1, by: lines}"), 7, "step `a`: unknown `by`; known are value"),
    (steps("a: {value: 1}", "a: {value: 2}"), 8, "there is an input or a step of that name"),
    (steps("response: {value: 1}"), 7, "there is an input or a step of that name"),
    (steps("ratio: {value: 1}"), 7, "has the name of a function"),
    (steps("a-b: {value: 1}"), 7, "a name is one word"),
    (steps("a: {value: b}", "b: {value: 1}"), 7, "b: no input, no earlier step"),
    (steps("a: {split: response, by: words}"), 7, "by is sentences or lines, not 'words'"),
    (steps("a: {map: response}"), 7, "`to` must say what each word is worth"),
    (steps("a: {map: response, to: {yes: much}}"), 7, "yes is worth a number or null, not 'much'"),
    (steps("a: {map: response, to: {yes: 1}, other: true}"), 7, "other is worth a number"),
    (steps("stop: {when: response}"), 7, "stop needs `when` and `because`"),
    (steps("stop: {when: response, because: b, why: c}"), 7, "stop: unknown `why`"),
    (steps("stop: {when: response, because: b, status: scored}"), 7, "stop ends with"),
    (steps("stop: {when: response, because: b, status: lost}"), 7, "stop ends with"),
    (steps("stop: {when: response, because: b, status: invalid, score: 1}"), 7, "stop ends with"),
    (steps("stop: {when: nothing, because: b}"), 7, "nothing: no input"),
    (steps("a: {prompt: gone.prompty}"), 7, "no file gone.prompty"),
    (steps("a: {prompt: ../../out.prompty}"), 7, "is outside the folder of the metrics"),
    (steps("a: {prompt: none.prompty, in: {text: response}}"), 7, "declares no outputs"),
    (steps("a: {prompt: ask.prompty}"), 7, "ask.prompty takes text, items; missing text"),
    (steps("a: {prompt: ask.prompty, in: [text]}"), 7, "in is INPUT: EXPRESSION"),
    (steps("a: {prompt: ask.prompty, in: {text: response, x: 1}}"), 7, "unknown x"),
    (
        steps("a: {prompt: ask.prompty, in: {text: response}, align: items}"),
        7,
        "align is one INPUT: LIST",
    ),
    (
        steps("a: {prompt: ask.prompty, in: {text: response}, align: {items: gone}}"),
        7,
        "gone: no input",
    ),
    (steps("a: {prompt: score.prompty, align: {text: response}}"), 7, "one output of type array"),
    (steps("a: {prompt: ask.prompty, in: {text: item}}"), 7, "item: no input"),
    (
        steps("a: {prompt: ask.prompty, in: {text: response}, repeat: 0}"),
        7,
        "repeat is a number from 1",
    ),
    (
        steps("a: {prompt: ask.prompty, in: {text: response}, repeat: many}"),
        7,
        "repeat is a number",
    ),
    (
        steps("a: {prompt: ask.prompty, in: {text: response}, repeat: true}"),
        7,
        "repeat is a number",
    ),
    (
        steps("a: {prompt: ask.prompty, in: {text: response}, parameters: 1}"),
        7,
        "parameters are NAME: VALUE",
    ),
    (
        steps("a: {prompt: score.prompty, in: {text: response}, distribution: loose}"),
        7,
        "distribution is of an output with levels; there are score",
    ),
    (
        steps(
            "a: {prompt: ask.prompty, in: {text: response}, align: {items: response}, "
            "distribution: found}"
        ),
        7,
        "align and distribution do not go together",
    ),
    ("a: [\n", 2, "not valid YAML"),
    ("a: 1\na: 2\n", 2, "duplicate key"),
    ("- 1\n", 1, "must be `key: value` lines"),
]


@pytest.mark.parametrize(("text", "line", "words"), MISTAKES, ids=[m[2][:40] for m in MISTAKES])
def test_a_mistake_is_found_with_its_line(place: Path, text: str, line: int, words: str) -> None:
    place.write_text(text)
    with pytest.raises(PromptyError) as caught:
        load_metric(place)
    assert caught.value.path == place
    assert caught.value.line == line
    assert words in caught.value.message
    # And `assay check` says the same.
    (found,) = check_metric_file(place)
    assert (found[0], found[2], found[3]) == (line, "error", "metric")
    assert words in found[4]


def test_a_broken_prompt_is_named_with_its_own_line(place: Path) -> None:
    place.write_text(WHOLE)
    (place.parent / "ask.prompty").write_text(ASK.replace("{% endfor %}", ""))
    with pytest.raises(PromptyError) as caught:
        load_metric(place)
    assert caught.value.path == (place.parent / "ask.prompty").resolve()
    assert caught.value.line
    (found,) = check_metric_file(place)
    assert found[:4] == (1, 1, "error", "metric")
    assert f"ask.prompty:{caught.value.line}" in found[4]


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(PromptyError, match="cannot be read"):
        load_metric(tmp_path / "metric.yaml")


def test_braces_may_stand_in_an_expression(place: Path) -> None:
    place.write_text(HEAD + "steps:\n  - a: {value: \"{'x': {'y': 1}}\"}\nscore: a.x.y\n")
    assert load_metric(place).result.names == {"a"}


@pytest.mark.parametrize(
    ("before", "after", "code", "line"),
    [
        (", threshold: 0.5", "", "metric-no-threshold", 5),
        (", minimum: 0, maximum: 1", "", "metric-no-scale", 5),
        (
            "  - stop: {when: not asked.found, because: nothing was found}\n",
            "",
            "metric-no-policy",
            9,
        ),
        ("score: mean(worth)", "score: len(asked.found)", "metric-unused-step", 9),
        (
            "  response: {type: string}",
            "  response: {type: string}\n  query: {type: string}",
            "metric-unused-input",
            4,
        ),
        ("score: mean(worth)", "score: ratio(sum(worth), len(asked.found) + 1)", None, 0),
        ("score: mean(worth)", "score: ratio(sum(worth), len(response))", "metric-no-policy", 10),
    ],
)
def test_what_will_surprise_somebody(
    place: Path, before: str, after: str, code: str | None, line: int
) -> None:
    assert before in WHOLE
    place.write_text(WHOLE.replace(before, after))
    found = check_metric_file(place)
    assert [(f[0], f[3]) for f in found] == ([(line, code)] if code else [])
    assert all(CODES[f[3]].severity == f[2] and f[4] for f in found)


def test_a_level_of_two_digits_is_said(place: Path) -> None:
    place.write_text(
        HEAD + "steps:\n  - a: {prompt: score.prompty, in: {text: response}, distribution: score}\n"
        "score: rescale(expectation(a.levels), 1, 5)\n"
    )
    assert check_metric_file(place) == []
    (place.parent / "score.prompty").write_text(SCORE.replace("maximum: 5", "maximum: 10"))
    assert [f[2:4] for f in check_metric_file(place)] == [("info", "metric-long-level")]


def test_nothing_is_wrong_with_what_ships() -> None:
    found = {
        name: [f[3] for f in check_metric_file(path)]
        for name in shipped()
        if "@" not in name and (path := _file(name)) is not None
    }
    assert len(found) >= 30
    assert {name: codes for name, codes in found.items() if codes} == {
        "deepeval.geval": ["metric-long-level"]  # deepeval's scale is 0 to 10
    }


def _file(name: str) -> Path | None:
    from assay.errors import SetupError

    try:
        path = find(name)
    except SetupError:
        return None  # made in Python
    return path if path.name == "metric.yaml" else None
