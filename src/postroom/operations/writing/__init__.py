"""Operations on drafts and templates."""
