"""Operations on what mails are written from."""
