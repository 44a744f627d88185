"""Large emails in another store: `postroom blobs move`, on the server's machine."""

import os
import sys
from typing import Annotated

import typer

from postroom.commands.output import done
from postroom.config import ConfigError, load
from postroom_client.cli import app
from postroom_client.cli.command import Json, group

blobs_app = group("The store of large emails (on the server's machine).")
app.add_typer(blobs_app, name="blobs")


@blobs_app.command("move")
def move(
    remove: Annotated[
        bool, typer.Option("--remove", help="Remove each file here once it is copied.")
    ] = False,
    back: Annotated[bool, typer.Option("--back", help="From the store into the data folder.")] = False,
    as_json: Json = None,
) -> None:
    """Copy the large emails of the data folder into the store that POSTROOM_BLOB_URL names."""
    from postroom.storage.blobs import LocalBlobs
    from postroom.storage.s3_blobs import S3Blobs
    from postroom.upkeep import shared_blob_store

    config = load(os.environ)
    if not config.blob_url:
        raise ConfigError("POSTROOM_BLOB_URL", "must name the store, such as s3://bucket/prefix")
    local, there = LocalBlobs(config.data_dir / "blobs"), S3Blobs(config.blob_url)
    source, target = (there, local) if back else (local, there)
    damaged: list[str] = []
    moved = sum(1 for _ in shared_blob_store.move(source, target, remove, damaged.append))
    place = "the data folder" if back else config.blob_url.partition("?")[0]
    done({"moved": moved, "damaged": damaged}, f"{moved} large emails are in {place}.", as_json)
    for name in damaged:
        print(f"postroom: {name} is damaged and was not moved", file=sys.stderr)
    if damaged:
        raise typer.Exit(1)
