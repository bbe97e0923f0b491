"""What the daemon sets for its own process before it does anything else."""

from __future__ import annotations

import os
import resource


def make_private() -> None:
    """Whatever is created from here on is for the owner alone."""
    os.umask(0o077)


def raise_file_limit() -> int:
    """As many descriptors as the system allows; return that number.

    An instance costs a listening socket, an open database three files.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = min(hard, 1_048_576) if hard != resource.RLIM_INFINITY else 65_536
    if soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (ValueError, OSError):  # macOS refuses more than kern.maxfilesperproc
            return soft
    return max(soft, wanted)
