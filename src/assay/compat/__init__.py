"""Drop-in names for people who move: change the import line, keep the rest.

`assay.compat.azure` has the evaluators of azure-ai-evaluation, `assay.compat.embedchain` the
metrics of Embedchain. docs/migrate.md says what is the same and what is not.
"""
