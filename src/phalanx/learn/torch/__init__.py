"""The same with torch: for GPUs, images and networks of your own."""
