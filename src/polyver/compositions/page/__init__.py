"""Data of the web page about functions and compositions."""
