"""What the words of an email say, by the learning filter: a log-odds, above 0 for junk."""

from postroom_mail.html.page import HtmlPage
from postroom_mail.junk import features, model
from postroom_mail.junk.model import Model
from postroom_mail.mime.parse import ParsedMail


def score(raw: bytes, mail: ParsedMail, page: HtmlPage, taught: Model | None = None) -> float:
    """Score the words by the model of an account, or by the one that all accounts start with."""
    chosen = taught or Model(model.load_start())
    return chosen.score_email(features.read_features(raw, mail, page))
