"""One module for each command of `jackin-mem`, imported when it is used.

Each has `configure(parser)`, which adds the command's arguments and sets
`run`: a function of the parsed options that prints, and returns the exit
status or None for 0.
"""
