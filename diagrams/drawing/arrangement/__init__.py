"""Arrangement: where the blocks and wires of a drawing are, whatever its format."""
