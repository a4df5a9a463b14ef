"""Ray, and only here."""
