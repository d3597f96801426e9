"""Strings, durations, formats, names and YAML, as Kubernetes reads and writes them."""
