"""What the benchmarks of the server share: the machine, its processes, its load, its tables."""
