"""What controllers know of an API server, wherever it runs."""
