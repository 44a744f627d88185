"""Texts to write mails from: fields of templates, and a light markup for people."""
