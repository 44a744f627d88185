"""What agents look for in a mail: one-time codes, and links with their purpose."""

from postroom.mail.codes import codes as codes
from postroom.mail.links import LinkDetail as LinkDetail
from postroom.mail.links import link_details as link_details
from postroom.mail.links import links as links
