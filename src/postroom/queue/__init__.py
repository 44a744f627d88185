"""What has to be done."""
