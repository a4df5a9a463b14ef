"""Networks to defend: read from files, and made into the tables that the rules look up."""
