"""What the store says about itself: health, its API description, the pages of its problem types."""
