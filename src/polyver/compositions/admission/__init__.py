"""Admission checks of packages, compositions and composite resources."""
