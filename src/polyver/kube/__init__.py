"""The embedded Kubernetes API server.

This package knows nothing of polyver's capabilities, such as `functions` or `compositions`.
"""
