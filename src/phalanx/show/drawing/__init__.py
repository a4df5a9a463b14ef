"""Pages, charts and pictures: what all that is shown is drawn with."""
