"""`embedchain.config`."""
