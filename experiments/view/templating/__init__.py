"""From what a page shows to HTML, by templates; and from what an address asks for to our own types."""
