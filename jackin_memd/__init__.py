"""jackin-memd: the daemon that owns an operator's agent state.

Importing the package loads nothing else: `jackin_memd.wire` must stay cheap
for short client commands, and importing it runs this file.
"""

__version__ = "0.1.0"
