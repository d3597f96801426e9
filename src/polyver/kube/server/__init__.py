"""The Kubernetes-compatible API server: one request pipeline for every kind."""
