"""PID tuning: rules, search within a bound for robustness, and verification."""
