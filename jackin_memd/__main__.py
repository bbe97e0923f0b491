"""`python -m jackin_memd` is `jackin-memd`."""

from jackin_memd.cli import main

if __name__ == "__main__":
    main()
