"""What Office and Outlook wrote before their files were zip files of XML."""
