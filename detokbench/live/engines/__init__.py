"""The engines' own front ends, unmodified, against a clock in place of the GPU."""
