"""What a result has to say, before it becomes text, Markdown, HTML or JSON."""
