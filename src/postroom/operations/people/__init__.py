"""Operations on people: users, sign-in, programs, notifications and feedback."""
