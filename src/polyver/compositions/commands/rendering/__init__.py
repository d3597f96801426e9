"""The parts of `polyver render`: input files, resolution, calls of functions, output.

The decisions are those of the capability, as in the controllers. This package adds the input files,
and processes that end with the command.
"""
