"""Concurrency: threads, forks, interrupts, and silence for one thread."""
