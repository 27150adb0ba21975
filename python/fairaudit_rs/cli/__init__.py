"""The command line ``fairaudit``.

Exit codes: 0 done, for audits any verdict but a fail; 1 the policy is violated (or a calibration
does not hold); 2 usage or data error, or a bug; 3 undecided, with ``--strict``; 130 interrupted. A
closed output (``| head``) does not change them.
"""

from __future__ import annotations

import traceback
from typing import Any

import click

import fairaudit_rs as fa

from ..arguments import suggest_nearest
from .audit import audit
from .calibrate import calibrate
from .command import USAGE_ERROR
from .compare import compare
from .demo import demo
from .equivalence import equivalence
from .extremes import extremes
from .influence import influence
from .init import init
from .intervals import intervals
from .messages import print_text
from .metrics import list_metrics
from .permutation import permutation
from .power import power
from .projection import projection
from .tabulate import tabulate

INTERRUPTED = 130


class _CommandGroup(click.Group):
    """A group of commands that exits with 2 for errors that no command expects."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command by its name; the error suggests the nearest."""
        if args and self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            near = suggest_nearest(args[0], self.commands)
            ctx.fail(
                f"No such command {args[0]!r}{'; ' if near else '. '}{near}"
                "'fairaudit --help' lists all"
            )
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except OSError as error:
            print_text(f"fairaudit: error: {error}", err=True)
            ctx.exit(USAGE_ERROR)
        except KeyboardInterrupt:
            print_text("fairaudit: interrupted", err=True)
            ctx.exit(INTERRUPTED)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception:
            # Python's own exit code, 1, would look like a violated policy.
            print_text(traceback.format_exc(), err=True)
            print_text("fairaudit: a bug of this package; please report it", err=True)
            ctx.exit(USAGE_ERROR)


@click.group(cls=_CommandGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(fa.__version__, prog_name="fairaudit")
def main() -> None:
    """Test whether a model treats groups differently, or chance explains the gap.

    \b
    fairaudit init loans.csv      proposes fairaudit.toml: columns and a policy
    fairaudit audit loans.csv     prints a verdict; the exit code follows it
    fairaudit demo                audits made-up loan decisions

    Completion for bash: eval "$(_FAIRAUDIT_COMPLETE=bash_source fairaudit)"
    """


_COMMANDS = (
    *(init, audit, demo, list_metrics),
    *(permutation, projection, influence, extremes),
    *(compare, intervals, equivalence, power, calibrate, tabulate),
)
for _command in _COMMANDS:
    main.add_command(_command)
