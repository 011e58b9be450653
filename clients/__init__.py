"""Client packages of rerank services, driven against `didyma serve`."""
