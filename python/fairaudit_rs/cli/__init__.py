"""The command ``fairaudit``.

Exit codes: 0 done, 2 usage or data error, 130 interrupted. Verdicts (1 and 3) come with the
audit policy.
"""

from __future__ import annotations

from typing import Any

import click

import fairaudit_rs as fa

from ..errors import FairAuditError
from .calibrate import calibrate
from .demo import demo
from .extremes import extremes
from .influence import influence
from .messages import say, with_options
from .metrics import list_metrics
from .permutation import permutation
from .projection import projection

USAGE_ERROR = 2
INTERRUPTED = 130


class _Group(click.Group):
    """Shows our errors as one line with exit code 2."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except FairAuditError as error:
            command = self.commands[str(ctx.invoked_subcommand)]
            say(f"fairaudit: error: {with_options(str(error), command)}", err=True)
            ctx.exit(USAGE_ERROR)
        except OSError as error:
            say(f"fairaudit: error: {error}", err=True)
            ctx.exit(USAGE_ERROR)
        except KeyboardInterrupt:
            say("fairaudit: interrupted", err=True)
            ctx.exit(INTERRUPTED)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(fa.__version__, prog_name="fairaudit")
def main() -> None:
    """Find out whether a model is unfair, or whether it is noise."""


for _command in (demo, list_metrics, permutation, projection, influence, extremes, calibrate):
    main.add_command(_command)
