"""The parts of `polyver plan` for Compositions: input files, live objects, functions."""
