"""A composition function for buckets."""
