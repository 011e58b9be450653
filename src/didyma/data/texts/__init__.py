"""Readers of judged texts and of collections: queries and passages as `Lists`."""
