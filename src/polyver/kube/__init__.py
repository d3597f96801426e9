"""The embedded Kubernetes API server. It knows no capability."""
