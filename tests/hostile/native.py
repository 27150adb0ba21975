"""The native module as if it were public: the small calls of `native_calls`, changed in places."""

import contextlib
import io
from functools import cache

from .. import native_fuzz
from . import files


@cache
def _calls():
    path = files.folder() / "native.csv"
    path.write_text("group,label\na,1\nb,0\n", encoding="utf-8")
    with contextlib.redirect_stdout(io.StringIO()):
        return sorted(native_fuzz.recorded(str(path)).items(), key=lambda call: call[0])


@cache
def _others(name, place):
    """Return a substitute for an argument."""
    _, args, kwargs = dict(_calls())[name]
    return list(native_fuzz.worse(args[place] if isinstance(place, int) else kwargs[place]))


def make(r):
    """Draw a native call and one or two arguments that do not fit."""
    name, (native, args, kwargs) = r.choice(_calls())
    args, kwargs = list(args), dict(kwargs)
    places = [*range(len(args)), *kwargs]
    for _ in range(r.choice((1, 1, 2))) if places else ():
        place = r.choice(places)
        other = r.choice(_others(name, place) or [None])
        if isinstance(place, int):
            args[place] = other
        else:
            kwargs[place] = other
    return (
        f"_native.{name}",
        lambda **given: native(*given["args"], **given["kwargs"]),
        {
            "args": args,
            "kwargs": kwargs,
        },
    )
