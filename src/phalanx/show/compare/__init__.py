"""Which runs are better, and how sure that is."""
