"""Operations on ways in and out: connections."""
