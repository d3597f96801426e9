"""The page of functions and compositions."""
