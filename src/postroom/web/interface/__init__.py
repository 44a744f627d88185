"""What the interface takes and gives: bodies, shapes, and the document that describes them."""
