"""What no defender can beat: upper bounds on the mean return. The argument is in docs/bounds.md."""
