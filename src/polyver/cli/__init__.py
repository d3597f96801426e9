"""The toolkit of commands: output, errors, options, files. It imports no capability."""
