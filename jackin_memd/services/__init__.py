"""Use cases, one module for each method family: decide, write, announce."""
