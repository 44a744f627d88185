"""The rows of the route table that are about contacts, and the jobs that erase them."""

from postroom import errors
from postroom.accounts.permissions import MANAGING, READING
from postroom.operations import contacts, jobs
from postroom.web.api.contacts import export_contact
from postroom.web.routing import POD, SCOPED, delete, get, post

CONTACT, JOB = "/v1/contacts/{address}", "/v1/jobs/{job_id}"
HELD = (errors.LegalHold,)
NOT_WAITING = (errors.NothingToDo,)

CONTACT_ROWS = (
    get("/v1/contacts", contacts.list_contacts, SCOPED, READING),
    get(CONTACT, contacts.get_contact, SCOPED, READING),
    delete(CONTACT, contacts.erase_contact, POD, MANAGING, 202, HELD),
    get(f"{CONTACT}/export", export_contact, POD, MANAGING),
    get(JOB, jobs.get_job, SCOPED, READING),
    post(f"{JOB}/confirm", jobs.confirm_job, POD, MANAGING, 200, NOT_WAITING),
    delete(JOB, jobs.cancel_job, POD, MANAGING, 200, NOT_WAITING),
)
