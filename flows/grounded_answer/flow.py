"""The application under test: answers a question from the passages it is given."""

from pathlib import Path
from typing import Any

import assay

PROMPT = assay.load(Path(__file__).with_name("answer.prompty"))


async def answer_question(question: str, contexts: list[str], model: assay.Judge) -> dict[str, Any]:
    """Return {"answer": text}, or raise with the cause when the model gave none."""
    score = await PROMPT.score({"question": question, "contexts": contexts}, model)
    if score.status != "scored":
        raise RuntimeError(f"{score.cause}: {score.message}")
    return {"answer": score.outputs["answer"]}
