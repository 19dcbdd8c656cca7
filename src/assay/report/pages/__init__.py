"""What people read in a browser or a pull request: HTML and Markdown."""
