"""Formats of Office and Outlook before their files were zip files of XML."""
