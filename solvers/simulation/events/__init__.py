"""Events: due times, zero crossings of witnesses, and detection of infinitely many events."""
