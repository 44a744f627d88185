"""Tests of a judge of one's own."""
