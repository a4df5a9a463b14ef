"""Makes a site of the pages in docs/: `python -m docsite`, which is what `make docs` runs.

Pages about settings and columns are made from the code, so that they say what it does.
"""
