"""The toolkit of commands: output, errors, options, files. It knows no capability."""
