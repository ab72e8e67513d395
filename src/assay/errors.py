"""Everything assay raises on purpose.

AssayError
├── PromptyError        a .prompty file cannot be used: where (file:line), why, what to do
│   └── RenderError     the template met a value it cannot print
├── InputError          a row or a column does not fit what an evaluator declares
├── DataError           a data set cannot be read
├── SetupError          no judge, no key, an unknown name, a bad option
├── JudgeError          the judge did not answer
│   └── JudgeRefusal    the judge, or its content filter, declined
├── RunError            a run directory cannot be used
└── Stopped             the run was asked to stop before a call was made

A reply that does not hold what the file declares is no exception: reading returns it as a
`Reading` with a cause.
"""

from __future__ import annotations

from pathlib import Path


class AssayError(Exception):
    """Base of all errors a person can act on. `str()` is one readable line."""

    exit_code = 2


class PromptyError(AssayError):
    """A .prompty file that cannot be used.

    `path`, `line` and `column` (both from 1) say where, as far as it is known; `code` is the
    short name that `assay check` prints.
    """

    def __init__(
        self,
        message: str,
        *,
        path: Path | str | None = None,
        line: int | None = None,
        column: int | None = None,
        code: str = "prompty",
    ) -> None:
        self.message = message
        self.path = path
        self.line = line
        self.column = column
        self.code = code
        super().__init__(message)

    def __str__(self) -> str:
        where = ":".join(str(part) for part in (self.path, self.line, self.column) if part)
        return f"{where}: {self.message}" if where else self.message


class RenderError(PromptyError):
    """The template could not be rendered with these values."""


class InputError(AssayError):
    """A row does not give an evaluator what it declares. `cause` is a short machine word."""

    def __init__(self, message: str, *, cause: str = "missing_input") -> None:
        self.cause = cause
        super().__init__(message)


class DataError(AssayError):
    """A data set that cannot be read."""


class SetupError(AssayError):
    """Something must be set up differently before a run can start."""


class RunError(AssayError):
    """A run directory that cannot be used."""


class Stopped(AssayError):
    """The run was asked to stop before this call was made; it is left for a resumed run."""


class JudgeError(AssayError):
    """The judge did not answer.

    cause: machine word (`rate_limited`, `timeout`, `authentication`, ...).
    retryable: the same request may succeed later.
    retry_after: seconds the server asked to wait, where it did.
    fatal: every further request will fail in the same way (a bad key, an unknown model).
    """

    exit_code = 3

    def __init__(
        self,
        message: str,
        *,
        cause: str,
        retryable: bool = False,
        retry_after: float | None = None,
        fatal: bool = False,
        status: int | None = None,
    ) -> None:
        self.cause = cause
        self.retryable = retryable
        self.retry_after = retry_after
        self.fatal = fatal
        self.status = status
        self.attempts = 1
        super().__init__(message)


class JudgeRefusal(JudgeError):
    """A content filter or the model itself declined to answer."""


def first_error(error: BaseException) -> BaseException:
    """What ended a group of tasks: the first error in it, however deep the groups are."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
