"""Which column gives which input, under every library's names."""

from __future__ import annotations

from typing import Any

import pytest

from assay.errors import SetupError
from assay.metric.columns import (
    alias_of,
    bind_columns,
    check_mapping,
    column_name,
    mapping_for,
)
from assay.prompty import Input


def inputs(*names: str) -> dict[str, Input]:
    return {name: Input(name) for name in names}


# Rows as the libraries of the field write them: (what they call it, what it is).
LIBRARIES = {
    "embedchain": {"question": "query", "answer": "response", "contexts": "context"},
    "ragas 0.1": {
        "question": "query",
        "answer": "response",
        "contexts": "context",
        "ground_truth": "ground_truth",
    },
    "ragas 0.2": {
        "user_input": "query",
        "response": "response",
        "retrieved_contexts": "context",
        "reference": "ground_truth",
        "reference_contexts": "reference_contexts",
    },
    "deepeval": {
        "input": "query",
        "actual_output": "response",
        "retrieval_context": "context",
        "expected_output": "ground_truth",
        "context": "reference_contexts",
    },
    "azure": {
        "query": "query",
        "response": "response",
        "context": "context",
        "ground_truth": "ground_truth",
    },
    "promptflow": {"question": "query", "answer": "response", "documents": "context"},
    "others": {"prompt": "query", "prediction": "response", "target": "ground_truth"},
}


@pytest.mark.parametrize("library", LIBRARIES)
def test_every_librarys_columns_are_found(library: str) -> None:
    meaning = LIBRARIES[library]
    row = {column: f"the {canonical}" for column, canonical in meaning.items()}
    found = bind_columns("m", inputs(*meaning.values()), row).values(row)
    assert found == {canonical: f"the {canonical}" for canonical in meaning.values()}


def test_context_is_the_retrieved_passages_unless_another_column_has_them() -> None:
    alone = {"context": "retrieved"}
    both = {"context": "ideal", "retrieval_context": "retrieved"}
    for row in (alone, both):
        assert bind_columns("m", inputs("context"), row).values(row) == {"context": "retrieved"}
    third = {"contexts": "other", **both}
    assert bind_columns("m", inputs("context"), third).values(third) == {"context": "retrieved"}
    assert alias_of("reference_contexts", alone) is None
    assert alias_of("reference_contexts", both) == "context"
    assert alias_of("contexts", alone) == "context"


def test_the_column_of_the_same_name_wins_and_the_record_says_what_was_an_alias() -> None:
    binding = bind_columns("m", inputs("response", "query"), ["answer", "response", "question"])
    assert binding.columns == {"response": "response", "query": "question"}
    assert binding.aliases == {"query": "question"}


def test_a_mapping_wins_over_everything_and_reaches_inside() -> None:
    row = {"response": "a", "output": {"text": "b", "n": None}, "x.y": "c"}
    for column, value in (
        ("output.text", "b"),
        ("x.y", "c"),
        ("response", "a"),
        ("output.n", None),
    ):
        binding = bind_columns("m", inputs("response"), row, {"response": column})
        assert binding.values(row) == {"response": value}
    gone = bind_columns("m", inputs("response"), row, {"response": "output.gone"})
    assert gone.values(row) == {}


def test_a_column_no_row_has_is_an_error_that_names_everything() -> None:
    with pytest.raises(SetupError) as caught:
        bind_columns("on_topic", inputs("question", "answer"), ["question", "anwser"])
    message = str(caught.value)
    assert message.startswith(
        "on_topic needs answer, which no row has; columns are question, anwser"
    )
    assert "did you mean anwser?" in message


def test_a_mapping_to_a_column_no_row_has_is_named() -> None:
    with pytest.raises(SetupError, match=r"answer \(mapped to gone\)"):
        bind_columns("m", inputs("answer"), ["answer"], {"answer": "gone"})


def test_optional_inputs_need_no_column() -> None:
    declared = {"a": Input("a", required=False), "query": Input("query", required=False)}
    assert bind_columns("m", declared, ["question"]).columns == {"query": "question"}


@pytest.mark.parametrize(
    ("written", "column"),
    [
        ("response", "response"),
        (" response ", "response"),
        ("${data.response}", "response"),
        ("${target.answer.text}", "answer.text"),
        ("${run.outputs.answer}", "answer"),
        ("${outputs.answer}", "answer"),
    ],
)
def test_references_as_azure_writes_them(written: str, column: str) -> None:
    assert column_name(written) == column


@pytest.mark.parametrize("written", ["${other.x}", "${data.}", "pre ${data.x}", "", " "])
def test_what_is_no_reference(written: str) -> None:
    with pytest.raises(SetupError, match="is no column"):
        column_name(written)


@pytest.mark.parametrize(
    "mapping",
    [
        {"answer": "reply"},
        {"response": "reply"},
        {"similarity": {"answer": "${data.reply}"}},
        {"similarity": {"column_mapping": {"answer": "reply"}}},
        {"default": {"response": "reply"}},
        {"answer": "reply", "other": {"answer": "no"}, "unknown": "x"},
        {"similarity": {"answer": "reply"}, "answer": "no"},
    ],
)
def test_the_part_of_a_mapping_for_one_evaluator(mapping: dict[str, Any]) -> None:
    assert mapping_for("similarity", ["question", "answer"], mapping) == {"answer": "reply"}


def test_no_mapping_maps_nothing() -> None:
    assert mapping_for("m", ["a"], None) == {}


def test_an_evaluators_own_part_may_name_only_its_inputs() -> None:
    with pytest.raises(SetupError, match=r"'anwser', which m does not take.*did you mean answer"):
        mapping_for("m", ["answer"], {"m": {"anwser": "x"}})


@pytest.mark.parametrize(
    ("mapping", "words"),
    [
        ({"on_topik": {"answer": "x"}}, "'on_topik'.*did you mean on_topic"),
        ({"anwser": "x"}, "'anwser'.*did you mean answer"),
        ({"answer": {"on_topic": "x"}}, r'shape is \{"EVALUATOR"'),
    ],
)
def test_an_entry_nobody_uses_is_an_error(mapping: dict[str, Any], words: str) -> None:
    with pytest.raises(SetupError, match=words):
        check_mapping(mapping, {"on_topic": ["question", "answer"]})


@pytest.mark.parametrize(
    "mapping", [{}, {"answer": "x"}, {"query": "x"}, {"on_topic": {}}, {"default": {"z": "x"}}]
)
def test_an_entry_somebody_uses_is_none(mapping: dict[str, Any]) -> None:
    check_mapping(mapping, {"on_topic": ["question", "answer"]})
