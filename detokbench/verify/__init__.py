"""What each path does to text: streams, the laws that a right path keeps, and who breaks them."""
