"""Documents, notes and words of results, before they become text, Markdown, HTML or JSON."""
