"""Parts of every polyver server: HTTP/1.1 and TLS, health, logs, worker threads, private files."""
