"""The lineages of functions and compositions on the page."""
