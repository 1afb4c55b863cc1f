"""Programs that make committed files from the source; each has a test that compares the two."""
