"""The commands of the capability definitions."""
