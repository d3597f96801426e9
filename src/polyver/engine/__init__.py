"""The one loop for every controller."""
