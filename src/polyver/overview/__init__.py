"""Who uses which release and why, across all capabilities."""
