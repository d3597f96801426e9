"""The steps of `polyver render`: read, choose, serve, run, print.

The decisions are those of the capability, as in the controllers; this package adds the input files,
and processes that end with the command.
"""
