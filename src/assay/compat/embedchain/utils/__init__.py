"""`embedchain.utils`."""
