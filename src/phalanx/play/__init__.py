"""A defender plays: any kind of defender, evaluated, explained, exported."""
