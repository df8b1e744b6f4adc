"""What only the training benchmark needs."""
