"""Networks and steps as compiled functions of arrays, for the CPU."""
