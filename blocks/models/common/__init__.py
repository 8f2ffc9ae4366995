"""Common to the readers: XML elements, visuals, limits of joints, and what is left out."""
