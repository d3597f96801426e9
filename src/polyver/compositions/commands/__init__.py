"""The commands of the capability `compositions`."""
