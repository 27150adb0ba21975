"""Turn documents into text, Markdown, HTML and JSON, one module for each format."""
