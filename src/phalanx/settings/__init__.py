"""Settings of every command: what may be given, from where, and how it is checked."""
