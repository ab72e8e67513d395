"""The .prompty file: text to Prompty, Prompty to messages, reply to outputs.

Usable without any judge:

    prompty = assay.prompty.load("similarity.prompty")
    messages = prompty.render({"query": ..., "response": ..., "ground_truth": ...})
    reading = prompty.read('{"reason": "same meaning", "similarity": 3}')
"""

from assay.prompty.fields import Input, Output
from assay.prompty.model import Prompty, load, loads
from assay.prompty.reply import Reading

__all__ = ["Input", "Output", "Prompty", "Reading", "load", "loads"]
