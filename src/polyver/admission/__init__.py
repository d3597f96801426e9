"""Who has a say in a write: one chain, asked in process or by an API server over HTTPS."""
