"""To look at: the report of a run, runs side by side, a viewer, exports."""
