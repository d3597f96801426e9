"""Modules that every polyver server uses: HTTP/1.1, TLS, health, logs, threads, private files."""
