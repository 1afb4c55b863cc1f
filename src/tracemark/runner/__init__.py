"""Running agents under a harness and recording what they do; writes journals to the inbox, never the store."""
