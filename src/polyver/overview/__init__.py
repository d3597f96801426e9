"""`polyver why` and `polyver impact`: the uses of releases in all capabilities, with reasons."""
