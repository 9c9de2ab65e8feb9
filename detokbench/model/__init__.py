"""What the measurements mean: pure arithmetic, without a clock, a file or a tokenizer."""
