"""Cases: programs with the right verdict, checked on this host."""
