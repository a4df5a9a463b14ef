"""The rules of CAGE Challenge 2: what a player would nod at."""
