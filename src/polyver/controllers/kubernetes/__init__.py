"""Controllers that every cluster has: garbage collection, namespaces, accounts."""
