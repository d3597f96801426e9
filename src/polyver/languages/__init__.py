"""Interpreters of CEL, Go templates, JSONPath and RE2. They know nothing of polyver."""
