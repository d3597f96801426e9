"""The commands of the capability apis."""
