"""Published experiments on the public data; `make papers` writes docs/reproduction.md."""
