"""The corpus as a DVC pipeline: what each stage reads, and what it writes."""
