"""`python -m tracemark`: the program, where it is not on the path."""

from tracemark.cli.main import main

main()
