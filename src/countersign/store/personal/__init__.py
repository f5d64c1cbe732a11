"""What belongs to a person or an organisation alone: follows, collections, notes on the library, notifications."""
