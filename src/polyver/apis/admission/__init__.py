"""Admission of Conversions and of kinds that are declared in Python."""
