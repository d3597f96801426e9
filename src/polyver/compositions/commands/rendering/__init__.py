"""The parts of `polyver render`: input files, resolution, calls of functions, output.

The command uses the same code as the controllers for its decisions. This package adds the input
files, and function processes that end together with the command.
"""
