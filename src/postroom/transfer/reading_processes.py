"""What processes that parse old mail need: loaded once, in the process that they are forked from."""

import gc

from postroom.inward import receive
from postroom.transfer import import_mail  # noqa: F401 (loaded here for all of them)

receive.warm_up()
gc.freeze()  # everything loaded so far stays: no collection needs to look at it again
