"""One file for each system whose configurations can be priced."""
