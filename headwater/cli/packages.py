"""`headwater sandbox packages`: third-party packages that judged Python programs may import where tasks name them."""

from typing import Annotated

import typer

from headwater.errors import HeadwaterError

sandbox = typer.Typer(no_args_is_help=True, help="What judged programs find.")
packages = typer.Typer(no_args_is_help=True, help="Third-party packages for judged Python programs.")
sandbox.add_typer(packages, name="packages")


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(sandbox, name="sandbox")


@packages.command("add")
def add(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="As pip knows them: numpy, pandas==2.3.")],
) -> None:
    """Install packages for judged programs. A task names those that its programs see: `"packages": ["numpy"]`."""
    from sandbox.languages.packages import PackagesError, add, folder

    try:
        add(names)
    except PackagesError as error:
        raise HeadwaterError(str(error)) from error
    typer.echo(f"installed in {folder()}")


@packages.command("list")
def installed() -> None:
    """Name what is there."""
    from sandbox.languages.packages import installed

    for name, version in sorted(installed().items()):
        typer.echo(f"{name} {version}")
