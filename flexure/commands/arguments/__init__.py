"""Arguments of commands: words read as models, values, calls, metrics and plans."""
