"""The questions asked of tl-serve, a module each. Each has `measure(lab) -> Section`."""
