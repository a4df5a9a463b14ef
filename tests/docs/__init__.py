"""The documents: what they say can be run, and the site that is made of them."""
