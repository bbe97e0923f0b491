"""What the operating system is asked for: paths, locks, processes, peers, logs."""
