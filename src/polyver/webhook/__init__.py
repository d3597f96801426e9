"""Conversion for API servers that ask over HTTPS: ConversionReviews, TLS, health and metrics."""
