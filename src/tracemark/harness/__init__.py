"""What made a trace: harness versions on disk, their fingerprints, and what content says about them."""
