"""Concurrency: threads, forks, interrupts, silence for one thread, linear algebra in one."""
