"""Serves the function: `python -m function.main --help` tells how."""

from typing import Any

import click
from crossplane.function import cli

from function.fn import Bucket


@click.command()
@cli.standard_options
def main(**options: Any) -> None:
    """Serve a composition function for buckets."""
    cli.run(Bucket(), **options)


if __name__ == "__main__":
    main()
