"""HTTP in front of metrics and runs."""
