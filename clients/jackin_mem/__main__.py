"""`python -m jackin_mem` is `jackin-mem`."""

from jackin_mem.cli import main

if __name__ == "__main__":
    main()
