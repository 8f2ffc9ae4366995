"""Reading: XML elements, visuals, inertia and joint data that all file formats share."""
