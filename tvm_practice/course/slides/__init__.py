"""The pages of phases and labs as slides: one HTML file each, which needs no network."""
