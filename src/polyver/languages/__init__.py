"""Interpreters of CEL, Go templates, JSONPath and regular expressions, independent of polyver."""
