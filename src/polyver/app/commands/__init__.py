"""The commands that work with all capabilities, such as `polyver why`."""
