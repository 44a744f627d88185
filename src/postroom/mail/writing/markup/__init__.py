"""Texts that a mail is written from: fields of templates, and a light markup for people."""
