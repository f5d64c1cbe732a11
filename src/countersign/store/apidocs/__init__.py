"""What the store publishes about itself: health, API description, manual, pages of problem types."""
