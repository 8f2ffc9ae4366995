"""Cross sections, materials and strength: what flexures are made of."""
