"""Converts objects to rows of the tables that `kubectl get` prints."""
