"""The controller of ActionSets, and the calls of functions that it makes."""
