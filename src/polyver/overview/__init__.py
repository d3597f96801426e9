"""`polyver why` and `polyver impact`: which releases are used, by which objects, and why.

Each capability answers for its own kinds.
"""
