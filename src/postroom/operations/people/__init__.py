"""Operations on people: users, sign-in, passkeys, devices and the programs that they allow."""
