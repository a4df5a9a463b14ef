"""How fast phalanx is: figures and ratios, measured side by side in one run."""
