"""FMUs as blocks: their descriptions, their binaries, and the block that runs them."""
