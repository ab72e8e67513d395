"""`assay check` and `assay convert` as people and CI call them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from assay.cli.check import check
from assay.cli.convert import convert
from assay.prompty import load

GOOD = """---
inputs:
  answer: {type: string}
outputs:
  tone: {type: integer, minimum: 0, maximum: 2}
---
system:
Judge the tone from 0 to 2.
user:
{{ answer }}
"""
WARNED = GOOD.replace("{type: string}", "{type: string}\n  other: {type: string}")
BROKEN = GOOD.replace("{{ answer }}", "{% if x %}")


@pytest.fixture
def run() -> CliRunner:
    return CliRunner()


def invoke(run: CliRunner, *args: object) -> Result:
    app = typer.Typer()
    app.command("check")(check)
    app.command("convert")(convert)
    return run.invoke(app, [str(arg) for arg in args])


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


@pytest.mark.parametrize(
    ("text", "options", "code"),
    [
        (GOOD, [], 0),
        (WARNED, [], 0),
        (WARNED, ["--strict"], 1),
        (BROKEN, [], 1),
    ],
)
def test_exit_codes(
    run: CliRunner, tmp_path: Path, text: str, options: list[str], code: int
) -> None:
    file = write(tmp_path, "a.prompty", text)
    assert invoke(run, "check", file, *options).exit_code == code


def test_text_has_one_line_a_finding_and_a_count_on_stderr(run: CliRunner, tmp_path: Path) -> None:
    file = write(tmp_path, "a.prompty", WARNED)
    result = invoke(run, "check", file)
    (line,) = result.stdout.splitlines()
    assert line.startswith(f"{file}:4:3: warning unused-input ")
    assert result.stderr == "1 file checked: 1 warning\n"


def test_json(run: CliRunner, tmp_path: Path) -> None:
    file = write(tmp_path, "a.prompty", WARNED)
    for options in (["--json"], ["--format", "json"]):
        result = invoke(run, "check", file, *options)
        (finding,) = json.loads(result.stdout)
        assert list(finding) == ["file", "line", "column", "severity", "code", "message"]
        assert (finding["file"], finding["line"], finding["column"]) == (str(file), 4, 3)
    assert (
        json.loads(invoke(run, "check", write(tmp_path, "b.prompty", GOOD), "--json").stdout) == []
    )


def test_github_and_sarif(run: CliRunner, tmp_path: Path) -> None:
    file = write(tmp_path, "a.prompty", WARNED)
    assert invoke(run, "check", file, "--format", "github").stdout.startswith("::warning file=")
    log = json.loads(invoke(run, "check", file, "--format", "sarif").stdout)
    assert [result["ruleId"] for result in log["runs"][0]["results"]] == ["unused-input"]


def test_folders_are_walked_without_hidden_ones(run: CliRunner, tmp_path: Path) -> None:
    for name in ("a.prompty", "deep/er/b.prompty", ".git/c.prompty", "node_modules/d.prompty"):
        write(tmp_path, name, WARNED)
    write(tmp_path, "notes.txt", "x")
    found = json.loads(invoke(run, "check", tmp_path, "--json").stdout)
    assert [Path(f["file"]).name for f in found] == ["a.prompty", "b.prompty"]
    twice = json.loads(invoke(run, "check", tmp_path, tmp_path / "a.prompty", "--json").stdout)
    assert twice == found


@pytest.mark.parametrize("argument", ["none.prompty", "notes.txt", "empty", None])
def test_usage_problems_are_one_line(run: CliRunner, tmp_path: Path, argument: str | None) -> None:
    write(tmp_path, "notes.txt", "x")
    (tmp_path / "empty").mkdir()
    result = invoke(run, "check", *([tmp_path / argument] if argument else []))
    assert result.exit_code == 2
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    assert argument is None or argument in result.stderr


@pytest.mark.parametrize(
    ("encoding", "newline"), [("utf-8", "\n"), ("utf-8-sig", "\r\n"), ("utf-16", "\n")]
)
def test_fix_writes_the_file_and_shows_the_diff(
    run: CliRunner, tmp_path: Path, encoding: str, newline: str
) -> None:
    unused = GOOD.replace("{{ answer }}", "x").replace("\n", newline)
    file = tmp_path / "a.prompty"
    file.write_bytes(unused.encode(encoding))
    assert invoke(run, "check", file).exit_code == 1
    result = invoke(run, "check", file, "--fix")
    assert result.exit_code == 0
    assert "+{{answer}}" in result.stderr
    assert result.stdout == ""
    written = file.read_bytes()
    assert written.decode(encoding).startswith(unused)
    assert written.startswith("\ufeff".encode(encoding)[:2]) == (encoding != "utf-8")
    again = invoke(run, "check", file, "--fix")
    assert "+" not in again.stderr
    assert file.read_bytes() == written


def test_fix_touches_no_file_without_need(run: CliRunner, tmp_path: Path) -> None:
    file = write(tmp_path, "a.prompty", BROKEN)
    before = file.stat().st_mtime_ns
    assert invoke(run, "check", file, "--fix").exit_code == 1
    assert file.stat().st_mtime_ns == before


def test_the_schema_is_json(run: CliRunner) -> None:
    result = invoke(run, "check", "--schema")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["$defs"]["output"]["properties"]["threshold"]


def test_attack_says_how_many_renders(run: CliRunner, tmp_path: Path) -> None:
    file = write(tmp_path, "a.prompty", GOOD)
    result = invoke(run, "check", "--attack", file)
    assert result.exit_code == 0
    assert result.stdout.startswith(f"{file}: attack: ")
    assert "structure unchanged" in result.stdout
    data = invoke(run, "check", "--attack", file, "--json")
    assert json.loads(data.stdout) == []
    assert "structure unchanged" in data.stderr


def test_attack_fails_where_a_value_opens_a_message(run: CliRunner, tmp_path: Path) -> None:
    text = GOOD + "{% if '```' in answer %}\nassistant:\nseen\n{% endif %}\n"
    result = invoke(run, "check", "--attack", write(tmp_path, "a.prompty", text))
    assert result.exit_code == 1
    assert "error attack " in result.stdout


def test_the_projects_own_files_are_clean(run: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parents[2])
    result = invoke(run, "check", "evaluators", "flows", "--attack", "--json")
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    # Published as it is, without a scale: the only file that keeps a warning. What deepeval
    # does with a level of two digits is a note on its variant.
    assert {(Path(f["file"]).as_posix(), f["code"]) for f in found} == {
        ("evaluators/similarity_es.prompty", "no-scale"),
        ("evaluators/deepeval.geval/metric.yaml", "metric-long-level"),
    }


def test_convert_prints_or_writes(run: CliRunner, tmp_path: Path) -> None:
    file = write(tmp_path, "a.prompty", GOOD.replace("\n", "\r\n"))
    printed = invoke(run, "convert", file, "--to", "v2")
    assert printed.exit_code == 0
    assert printed.stdout_bytes.endswith(file.read_bytes()[file.read_bytes().index(b"system:") :])
    out = tmp_path / "b.prompty"
    written = invoke(run, "convert", file, "--to", "v2", "-o", out)
    assert written.stdout == ""
    assert out.read_bytes() == printed.stdout_bytes
    assert load(out).outputs == load(file).outputs


def test_convert_says_what_it_cannot_do(run: CliRunner, tmp_path: Path) -> None:
    file = write(tmp_path, "a.prompty", GOOD)
    same = invoke(run, "convert", file, "--to", "classic")
    assert same.stdout == GOOD
    assert "nothing to convert" in same.stderr
    broken = invoke(run, "convert", write(tmp_path, "b.prompty", "---\nx"), "--to", "v2")
    assert broken.exit_code == 2
    assert "b.prompty:1" in broken.stderr
    assert invoke(run, "convert", tmp_path / "none.prompty", "--to", "v2").exit_code == 2
