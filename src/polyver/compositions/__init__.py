"""compositions: several live revisions of a function, and compositions that choose."""
