"""`embedchain.utils.eval`: where Embedchain's documentation imports EvalData from."""

from assay.compat.embedchain.utils.evaluation import EvalData, EvalMetric

__all__ = ["EvalData", "EvalMetric"]
