"""What is seen and said of a drive while it is served: metrics, and a socket for commands."""
