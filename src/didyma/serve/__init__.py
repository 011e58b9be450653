"""A server for rerankers, which answers the clients of services that people use already."""
