"""Modules that commands share: output, errors, options and files. They import no capability."""
