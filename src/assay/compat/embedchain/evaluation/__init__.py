"""`embedchain.evaluation`."""
