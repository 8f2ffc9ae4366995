"""Systems: blocks and diagrams, their declarations, ports, layout and feedthrough."""
