"""Definitions: semantic versions of components, and applications that follow them."""
