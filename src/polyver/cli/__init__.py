"""Modules that all commands use: output, errors, options and files. They import no capability."""
