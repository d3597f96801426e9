"""Controllers that every cluster has: garbage collector, namespaces, service accounts."""
