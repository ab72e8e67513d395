"""One parsed .prompty file."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from assay.errors import PromptyError
from assay.prompty import frontmatter, references, reply
from assay.prompty.dialect import SETTINGS, Model, letter, read_model
from assay.prompty.fields import MISSING, Input, Output, read_inputs, read_outputs
from assay.prompty.messages import Message, thread_messages, to_messages
from assay.prompty.source import decode, normal, split
from assay.prompty.template import Image, Template, Thread


@dataclass(frozen=True)
class Prompty:
    """A .prompty file: what it takes, what it says to the model, what it gives back.

    text: the whole file. front: its front matter, {} where there is none.
    positions: (line, column) of every front matter key path. body_line: where the body starts.
    """

    text: str
    path: Path | None
    front: Mapping[str, Any]
    positions: frontmatter.Positions
    dialect: str
    body: str
    body_line: int
    model: Model
    declared_inputs: Mapping[str, Input]
    outputs: Mapping[str, Output]

    @cached_property
    def name(self) -> str:
        """The file's stem: what people call the metric and what result columns carry."""
        return self.path.name.split(".")[0] if self.path else self.title or "prompty"

    @cached_property
    def file_name(self) -> str:
        """The file's name, for people."""
        return self.path.name if self.path else self.name

    @property
    def title(self) -> str:
        return str(self.front.get("name") or "")

    @property
    def description(self) -> str:
        return str(self.front.get("description") or "")

    @cached_property
    def sha256(self) -> str:
        """Hash of the file as it was read."""
        return hashlib.sha256(self.text.encode("utf-8", "replace")).hexdigest()

    @cached_property
    def is_mustache(self) -> bool:
        """Whether the body is Mustache: declared so, or told by sections and no Jinja block."""
        from assay.prompty import mustache

        declared = _template_format(self.front.get("template"))
        if declared is None and "{%" not in self.body:
            return mustache.LOOKS_LIKE.search(self.body) is not None
        return declared == "mustache"

    @cached_property
    def template(self) -> Template:
        """The compiled body. Raises PromptyError where it is no template."""
        from assay.prompty.mustache import compile_mustache
        from assay.prompty.template import compile_jinja

        compile_body = compile_mustache if self.is_mustache else compile_jinja
        return compile_body(self.body, self.body_line, self.path)

    @cached_property
    def inputs(self) -> Mapping[str, Input]:
        """Declared inputs, then variables of the body that the file does not declare.

        A file that declares none but brings a sample has the sample's keys as inputs.
        """
        inputs = dict(self.declared_inputs)
        if not inputs and isinstance(self.front.get("sample"), Mapping):
            inputs = {str(n): Input(str(n), implicit=True) for n in self.front["sample"]}
        for name in sorted(self.template.variables):
            inputs.setdefault(name, Input(name, implicit=True))
        return inputs

    @property
    def used_inputs(self) -> frozenset[str]:
        """Inputs whose value reaches the messages."""
        threads = {name for name, item in self.inputs.items() if item.type == "thread"}
        return self.template.variables | threads

    @cached_property
    def primary(self) -> Output | None:
        """The headline output: the one marked `is_primary`, else the first scored one."""
        scored = [output for output in self.outputs.values() if output.scored]
        return next((o for o in scored if o.is_primary), scored[0] if scored else None)

    @cached_property
    def parameters(self) -> Mapping[str, Any]:
        """What goes on the wire beside the messages, every reference in it replaced."""
        return dict(references.resolve(dict(self.model.parameters), self.path))

    @cached_property
    def sample(self) -> Mapping[str, Any]:
        """The file's own example values. Used only where a person asks for them."""
        values: dict[str, Any] = {}
        found = self.front.get("sample")
        if isinstance(found, str):
            name = found.removeprefix("file:")
            found = references.resolve_files(found, self.path)
            if isinstance(found, str) and name.endswith((".json", ".yaml", ".yml")):
                found = references.read_beside(name, self.path)
        if isinstance(found, list):
            found = next((item for item in found if isinstance(item, Mapping)), {})
        for name, item in self.declared_inputs.items():
            if item.sample is not MISSING:
                values[name] = item.sample
        return values | (dict(found) if isinstance(found, Mapping) else {})

    def missing(self, values: Mapping[str, Any]) -> list[str]:
        """Required inputs for which `values` has no key."""
        return [n for n, item in self.inputs.items() if item.required and n not in values]

    def render(self, values: Mapping[str, Any]) -> list[Message]:
        """The messages for these input values: [{"role", "content"}, ...].

        Defaults fill in; optional inputs without a value are empty. Values no input is
        declared for are left out. Raises RenderError for a missing or null value the body
        prints, naming it and the line.
        """
        bound = {name: self._bind(item, values) for name, item in self.inputs.items()}
        unknown = {name: value for name, value in bound.items() if value is not MISSING}
        rendered = self.template.render(unknown)
        threads = [
            value
            for name, value in unknown.items()
            if isinstance(value, Thread) and name not in self.template.variables
        ]
        if threads and not rendered.text.strip():
            return [message for thread in threads for message in thread_messages(thread)]
        messages = to_messages(rendered, self.path)
        return messages + [message for thread in threads for message in thread_messages(thread)]

    def read(self, text: str) -> reply.Reading:
        """What a reply says: the declared outputs, or why not."""
        return reply.read(text, self.outputs)

    def _bind(self, item: Input, values: Mapping[str, Any]) -> Any:
        value = values.get(item.name, MISSING)
        if value is MISSING or value is None:
            value = item.default if item.default is not MISSING else value
        if value is None or value is MISSING:
            if item.required:
                return MISSING
            from jinja2 import Undefined

            return Undefined(name=item.name)
        if item.type == "thread" and isinstance(value, list):
            return Thread(value)
        if item.type == "image" and isinstance(value, str):
            return Image(value)
        return value


def load(path: str | Path) -> Prompty:
    """Read a .prompty file of any dialect. Raises PromptyError with file, line and cause."""
    path = Path(path)
    try:
        data = path.read_bytes()
    except IsADirectoryError:
        raise PromptyError("is a folder, not a .prompty file", path=path) from None
    except OSError as error:
        raise PromptyError(
            f"cannot be read: {error.strerror or error}", path=path, code="file"
        ) from None
    return loads(decode(data, path), path)


def loads(text: str, path: Path | None = None) -> Prompty:
    """Parse the text of a .prompty file; `path` names it in errors and roots its references."""
    source = split(normal(text), path)
    front: dict[str, Any] = {}
    positions: frontmatter.Positions = {}
    if source.front is not None:
        front, positions = frontmatter.parse(source.front, source.front_line, path)
    try:
        inputs = read_inputs(references.resolve_files(_inputs(front), path))
        outputs = read_outputs(references.resolve_files(front.get("outputs"), path))
    except PromptyError as error:
        key = "outputs" if "output" in error.message else "inputs"
        line, column = positions.get((key,), (None, None))
        raise PromptyError(
            error.message, path=path, line=line, column=column, code=error.code
        ) from None
    return Prompty(
        text=text,
        path=path,
        front=front,
        positions=positions,
        dialect=letter(None if source.front is None else front),
        body=source.body,
        body_line=source.body_line,
        model=read_model(_with_settings(front, path)),
        declared_inputs=inputs,
        outputs=outputs,
    )


def _with_settings(front: Mapping[str, Any], path: Path | None) -> Mapping[str, Any]:
    """`front` with `model` and the blocks in it read where they are `${file:...}`.

    One that cannot be read stays as it is: the settings are not needed to use the file with
    another judge, and whoever needs them meets the reference.
    """
    model = _read_if_possible(front.get("model"), path)
    if isinstance(model, Mapping):
        model = {
            key: _read_if_possible(value, path) if key in SETTINGS else value
            for key, value in model.items()
        }
    return {**front, "model": model}


def _read_if_possible(value: Any, path: Path | None) -> Any:
    try:
        return references.resolve_files(value, path) if isinstance(value, str) else value
    except PromptyError:
        return value


def _inputs(front: Mapping[str, Any]) -> Any:
    schema = front.get("inputSchema")
    if front.get("inputs") is None and isinstance(schema, Mapping):
        return schema.get("properties")
    return front.get("inputs")


def _template_format(declared: Any) -> str | None:
    """`jinja2`, `mustache`, ... from any of the forms of `template`."""
    if isinstance(declared, Mapping):
        declared = declared.get("format", declared.get("type"))
        if isinstance(declared, Mapping):
            declared = declared.get("kind")
    return declared.strip().lower() if isinstance(declared, str) else None
