"""What may be done by compiled code: the answers to reviews.

The module `_reviews` is there if a C compiler was when polyver was installed; what it does, Python
does as well, for more CPU.
"""
