"""What the networks of several applications share: training, vocabularies, options of commands."""
