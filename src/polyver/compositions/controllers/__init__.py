"""Controllers of packages, compositions and composite resources."""
