"""Judges: what answers a list of messages."""

from assay.judge.base import Decider, Judge, Message, Reply, Usage
from assay.judge.limits import Limited
from assay.judge.resolve import resolve
from assay.judge.scripted import ScriptedJudge

__all__ = [
    "Decider",
    "Judge",
    "Limited",
    "Message",
    "Reply",
    "ScriptedJudge",
    "Usage",
    "resolve",
]
