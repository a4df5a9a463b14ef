"""What the folders of runs tell: the list, settings, tables and curves."""
