"""Published privacy statements beside what can be proven: one file per paper; ``table`` has all of them."""
