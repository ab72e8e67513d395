"""A metric as a folder that the classic portal's cloud job and promptflow load.

FOLDER/flow.flex.yaml     names the class
FOLDER/assay_eval.py      the class: scores a row through assay, with a model configuration
FOLDER/requirements.txt   this version of assay
FOLDER/metric/...         the metric's own files, as they are
"""

from __future__ import annotations

import keyword
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from assay import __version__
from assay.errors import PromptyError, SetupError
from assay.metric.evaluator import PromptEvaluator
from assay.metric.metricfile import METRIC_FILE
from assay.metric.multistep import MetricEvaluator
from assay.metric.registry import find, load
from assay.prompty import Input, Prompty
from assay.prompty import load as load_prompty
from assay.prompty.check.finding import Collector
from assay.prompty.check.security import check_connection, check_secrets
from assay.prompty.frontmatter import parse
from assay.prompty.references import named, resolve_files
from assay.prompty.source import decode

_VARIABLE = re.compile(r"\s*\$\{\s*env\s*:[^:{}]+\}\s*", re.IGNORECASE)

_FLOW = """\
entry: assay_eval:AssayEvaluator
environment:
  python_requirements_txt: requirements.txt
"""

_CLASS = '''\
"""A metric as a flow, written by `assay export --flex` {version}."""

from pathlib import Path

from assay.compat.flex import load

METRIC = Path(__file__).parent.joinpath({path})


class AssayEvaluator:
    """Scores one row. For every metric `m` it returns m, m_score, m_result, m_reason,
    m_threshold, m_status and m_properties, which azure-ai-evaluation and the portals read.

    model_config: {{"azure_endpoint", "azure_deployment", "api_key"?, "api_version"?}} or
    {{"type": "openai", "model", "api_key", "base_url"?}}; Entra ID where it holds no key.
    threshold: instead of the one the metric declares.
    """

    def __init__(self, model_config: dict{unasked}, threshold: float = None):
        self._evaluator = load(METRIC, model_config, threshold)

    # promptflow knows no return types but str and dataclasses, and reads as JSON what is not `str`.
    def __call__(self, *, {parameters}, **kwargs):
        return self._evaluator({arguments}, **kwargs)

    # What azure-ai-evaluation asks for, so that many evaluators do not starve its threads.
    def _to_async(self):
        return self._evaluator._to_async()
'''


@dataclass(frozen=True)
class Flow:
    """A folder that is to be written: its files by their place in it, and what to know of it."""

    files: Mapping[str, bytes]
    notes: list[str]

    def write(self, folder: Path) -> None:
        """Write the files. Raises SetupError where something is there already."""
        try:
            if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
                raise SetupError(f"{folder} is there already: give a new or empty folder")
            for name, data in self.files.items():
                path = folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
        except OSError as error:
            raise SetupError(f"{folder} cannot be written: {error.strerror}") from None


def flow_of(metric: str | Path) -> Flow:
    """The folder for a metric: a name, a .prompty file, or a folder with a metric.yaml.

    Raises SetupError or PromptyError that says what cannot be carried.
    """
    evaluator = load(metric)
    if not isinstance(evaluator, PromptEvaluator | MetricEvaluator):
        raise _no(metric, "it is Python, not a file; pass it to evaluate() as it is")
    if isinstance(evaluator, MetricEvaluator) and evaluator.needs_embedder:
        raise _no(metric, "it needs an embedder, which a model configuration does not name")
    _check_inputs(metric, evaluator.inputs)
    path = _beside_links(find(metric))
    prompts = [load_prompty(file) for file in _prompts(path, evaluator)]
    root = path.parent.parent if path.name == METRIC_FILE else path.parent
    own = [path, *(file for prompty in prompts for file in _files(prompty))]
    carried = {f"metric/{file.relative_to(root).as_posix()}": file.read_bytes() for file in own}
    for prompty in prompts:
        _check_connection(prompty)
    for file in own:
        _check_text(file)
    files = {
        "flow.flex.yaml": _FLOW.encode(),
        "assay_eval.py": _class(evaluator, next(iter(carried))).encode(),
        "requirements.txt": f"assay[azure]=={__version__}\n".encode(),
        **carried,
    }
    return Flow(files, list(_notes(prompts)))


def _beside_links(path: Path) -> Path:
    """The absolute path with its folder's links followed; a file that is a link keeps its name."""
    return path.parent.resolve() / path.name


def _prompts(path: Path, evaluator: PromptEvaluator | MetricEvaluator) -> Iterator[Path]:
    """The .prompty files of a metric, by the names it gives them."""
    if isinstance(evaluator, PromptEvaluator):
        yield path
        return
    data, _ = parse(evaluator.text, 1, path)
    specs = [spec for step in data.get("steps") or [] for spec in step.values()]
    names = [str(s["prompt"]) for s in specs if isinstance(s, Mapping) and "prompt" in s]
    for name in dict.fromkeys(names):
        yield Path(os.path.normpath(path.parent / name))


def _files(prompty: Prompty) -> Iterator[Path]:
    """A prompt and what it refers to by ${file:...}. Raises PromptyError where that is missing."""
    assert prompty.path is not None
    yield prompty.path
    resolve_files(prompty.front, prompty.path)
    for name in named("file", prompty.front):
        yield Path(os.path.normpath(prompty.path.parent / name))


def _check_connection(prompty: Prompty) -> None:
    """Raises PromptyError for a key that stands in the settings as it is."""
    found = Collector(prompty.file_name, prompty.positions)
    front = resolve_files(prompty.front, prompty.path)
    check_connection(replace(prompty, front=front), found)
    _refuse(found, prompty.path)
    key = prompty.model.connection.get("api_key")
    if key and not _VARIABLE.fullmatch(str(key)):
        raise _secret("its api_key is a literal: write ${env:NAME} instead", prompty.path)


def _check_text(file: Path) -> None:
    """Raises PromptyError for what has the form of a key, wherever it stands."""
    found = Collector(file.name)
    check_secrets(decode(file.read_bytes(), file), found)
    _refuse(found, file)


def _refuse(found: Collector, path: Path | None) -> None:
    for finding in found.findings:
        if finding.code == "secret":
            raise _secret(finding.message, path, finding.line)


def _secret(why: str, path: Path | None, line: int | None = None) -> PromptyError:
    return PromptyError(f"it cannot be exported: {why}", path=path, line=line, code="secret")


def _check_inputs(metric: str | Path, inputs: Mapping[str, Input]) -> None:
    """Raises SetupError for an input that is no parameter of a Python function."""
    if not inputs:
        raise _no(metric, "it has no inputs")
    for name in inputs:
        taken = name in ("self", "kwargs") or name.startswith("__") or keyword.iskeyword(name)
        if not name.isidentifier() or taken:
            raise _no(metric, f"its input {name!r} is no name of a Python parameter; rename it")


def _class(evaluator: PromptEvaluator | MetricEvaluator, place: str) -> str:
    """The module, with the inputs as parameters. Nothing of a file but checked names is in it."""
    return _CLASS.format(
        version=__version__,
        path=", ".join(map(ascii, place.split("/"))),
        unasked="" if evaluator.needs_judge else " = None",
        parameters=", ".join(map(_parameter, _required_first(evaluator.inputs))),
        arguments=", ".join(f"{name}={name}" for name in evaluator.inputs),
    )


def _required_first(inputs: Mapping[str, Input]) -> list[Input]:
    return sorted(inputs.values(), key=lambda item: not item.required)


def _parameter(item: Input) -> str:
    if not item.required:
        return f"{item.name}=None"
    return f"{item.name}: str" if item.type == "string" else item.name


def _notes(prompts: list[Prompty]) -> Iterator[str]:
    for prompty in prompts:
        names = named("env", prompty.model.parameters)
        if names:
            yield f"{prompty.file_name} reads {', '.join(names)} from the environment where it runs"


def _no(metric: Any, why: str) -> SetupError:
    return SetupError(f"{metric} cannot be a flow folder: {why}")
