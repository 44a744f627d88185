"""Words of mails and of questions, so that one finds the other; pure, like all of `mail`."""
