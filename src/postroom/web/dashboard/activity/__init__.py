"""Mail received and sent."""
