"""Strings, durations, formats, names, JSON and YAML, as Kubernetes reads and writes them."""
