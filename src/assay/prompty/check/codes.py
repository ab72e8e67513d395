"""Every code that `assay check` can print: how bad it is and what it means.

docs/check.md shows this table; a test keeps the two alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning", "info"]


@dataclass(frozen=True, slots=True)
class Code:
    """One kind of finding. `fixable`: `assay check --fix` can repair it."""

    severity: Severity
    meaning: str
    fixable: bool = False


CODES: Mapping[str, Code] = {
    # The file cannot be used.
    "file": Code("error", "a file, or a file it refers to, cannot be read"),
    "file-outside": Code("error", "a `${file:...}` reference leaves the prompty's folder"),
    "encoding": Code("error", "the file is not UTF-8 (or UTF-16 with its mark) text"),
    "indented-delimiter": Code("error", "the `---` lines are indented", fixable=True),
    "unclosed": Code("error", "the front matter has no closing `---`", fixable=True),
    "lost-indentation": Code("error", "the front matter lost its indentation", fixable=True),
    "tab": Code("error", "a tab is used for indentation", fixable=True),
    "yaml": Code("error", "the front matter is not valid YAML"),
    "duplicate-key": Code("error", "a key is written twice in the same block"),
    "inputs": Code("error", "`inputs` is neither a mapping nor a list of named entries"),
    "outputs": Code("error", "`outputs` cannot be read, or one of its numbers is none"),
    "prompty": Code("error", "a value that the file declares cannot be used"),
    "template": Code("error", "the body is no valid template"),
    "empty": Code("error", "the body is empty: there is nothing to send"),
    # Keys and values of the front matter.
    "unknown-key": Code(
        "info", "a key no dialect knows; a warning where it is a near miss or misplaced"
    ),
    "unknown-type": Code("warning", "a declared type that is not known, read as any type"),
    "misspelt-key": Code("warning", "`tools_choice`, which no service knows", fixable=True),
    "env-unset": Code("warning", "an environment variable the file needs is not set"),
    "unknown-reference": Code("warning", "a `${...}` that is neither env: nor file:"),
    "sample-mismatch": Code("warning", "a sample value that does not fit the inputs"),
    "judged-default": Code(
        "warning", "a default for a judged input: rows without it would be judged on the default"
    ),
    "max-tokens-small": Code("warning", "too few tokens for the reply the file asks for"),
    # Inputs and the body.
    "undeclared-variable": Code("warning", "the body uses a variable that is no declared input"),
    "unused-input": Code("warning", "a declared input that never reaches the prompt"),
    "inputs-unused": Code("error", "none of the declared inputs reaches the prompt", fixable=True),
    "no-role": Code("warning", "no line opens a message, so the whole body is one system message"),
    "role-like": Code("info", "a line that looks like a role and stays content"),
    # Outputs and their scale.
    "no-outputs": Code("warning", "a metric that declares no outputs"),
    "no-score": Code("warning", "a metric none of whose outputs is a number, a boolean or levels"),
    "no-scale": Code("warning", "a numeric output without minimum and maximum, or levels"),
    "empty-scale": Code("error", "minimum is above maximum"),
    "threshold-outside-scale": Code("error", "a threshold outside the scale"),
    "level-outside-scale": Code("error", "a level outside minimum and maximum"),
    "scale-contradiction": Code("warning", "the prompt asks for values outside the scale"),
    "level-not-in-body": Code("warning", "a level that the prompt never mentions"),
    "output-not-in-body": Code("warning", "an output the prompt never names"),
    "json-not-in-body": Code(
        "error", "response_format json_object, but the prompt never says JSON: OpenAI rejects that"
    ),
    # Security.
    "secret": Code("error", "a secret is written into the file"),
    "insecure-endpoint": Code("warning", "an endpoint that is not https"),
    "hostile-template": Code(
        "error", "the template reaches into Python, loads files, or can use up memory or time"
    ),
    "block-filter": Code("error", "a filter over a block would act on placeholders, not on values"),
    "loop-bound": Code("warning", "a loop runs as often as an input says"),
    "attack": Code("error", "a hostile value changed the messages (`--attack`)"),
    # The ignore comments themselves.
    "unknown-code": Code("warning", "an `assay: ignore` comment names no known code"),
    # A metric.yaml.
    "metric": Code("error", "a metric.yaml that cannot be used"),
    "metric-no-threshold": Code("warning", "a metric without a threshold: nothing passes"),
    "metric-no-scale": Code("warning", "a metric whose output has no minimum and maximum"),
    "metric-no-policy": Code("warning", "a list that is divided by, with no stop for empty ones"),
    "metric-unused-step": Code("warning", "a step that no other step and no score uses"),
    "metric-unused-input": Code("warning", "an input that no step uses"),
    "metric-long-level": Code("info", "a distribution over levels of more than one digit"),
}
