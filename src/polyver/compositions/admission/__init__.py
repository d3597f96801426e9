"""Admission of packages, compositions and composite resources."""
