"""jackin-mem: the clients of jackin-memd.

`blocking.Client` for commands and scripts, `aio.open_client` on trio, and the
`jackin-mem` command. Importing the package loads nothing else.
"""
