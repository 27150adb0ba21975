"""Reads the imports of the package and of the core, and says what goes against the floor plan.

Layers are sets of rooms; a room may use its own modules and the rooms of lower layers.
"""

import ast
import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PYTHON = ROOT / "python" / "fairaudit_rs"
CORE = ROOT / "rust" / "fairaudit-core" / "src"

LENSES = {"permutation", "projection", "individual", "influence", "extremes"}
LAYERS = [
    {"errors", "literals", "progress"},
    {"arguments", "linear_programs", "writing", "interrupts", "report"},
    {"data", "datasets"},
    {"metrics", "models", "inference"},
    {"results"},
    LENSES,
    {"auditing"},
    {"rendering"},
    {"cli", "spark"},
]
CORE_LAYERS = [
    {"error"},
    {"draws", "parallel", "simd"},
    {"numerics"},
    {"random"},
    {"tabulate"},
    {"metrics"},
    {"bootstrap", "melded"},
    LENSES,
]
#: What only asks others for numbers.
WITHOUT_NATIVE = {"lens", "question", "result", "chart"}
#: Class names that say that something was done, and not to what.
PARTICIPLE = re.compile(
    "_*(Able|Alone|Asked|Audited|Bound|Built|Calibrated|Checked|Chosen|Coded|Compared|Computed|Dealt|"
    "Decided|Drawn|Encoded|Filtered|Fitted|Flipped|Folded|Found|Given|Held|Judged|Kept|Known|Learned|"
    "Leaving|Limited|Made|Matched|Measured|Melded|Melding|Mirrored|Mixed|Named|Opened|Ordered|Paired|"
    "Permuted|Planned|Posed|Prepared|Ranked|Read|Reading|Resampled|Scored|Seen|Selected|Settled|Shown|"
    "Shuffled|Sized|Sorted|Stored|Stratified|Taken|Tested|Tilted|Together|Told|Transformed|Tried|Twice|"
    "Weighted|Withheld|Written)"
)
MOST_FIELDS = 4
MOST_LINES = 600
MOST_CORE_LINES = 700


@dataclass(frozen=True)
class Import:
    """One name that a module takes from another one; modules are dotted, "" is the root."""

    source: str
    target: str
    name: str

    def __str__(self):
        return f"{self.source or '__init__'} -> {self.target or '__init__'}: {self.name}"


def module_name(path, root):
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def modules(root=PYTHON):
    """The syntax tree of every module by its dotted name."""
    return {
        module_name(path, root): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted(root.rglob("*.py"))
    }


def imports(trees, root=PYTHON):
    """Every import from the package itself: eager, lazy and for types alone."""
    found = []
    for source, tree in trees.items():
        is_package = root.joinpath(*source.split("."), "__init__.py").exists() or not source
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.level:
                parts = source.split(".") if source else []
                base = parts if is_package else parts[:-1]
                base = base[: len(base) - node.level + 1]
                target = ".".join([*base, *(node.module or "").split(".")]).strip(".")
            elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
                "fairaudit_rs"
            ):
                target = node.module.partition("fairaudit_rs")[2].lstrip(".")
            else:
                continue
            for alias in node.names:
                inside = f"{target}.{alias.name}".lstrip(".")
                if inside in trees or inside == "_native":
                    found.append(Import(source, inside, "*"))
                else:
                    found.append(Import(source, target, alias.name))
    return found


def layer_of(room, layers):
    return next((i for i, rooms in enumerate(layers) if room in rooms), None)


def goes_up(source, target, layers):
    """Return whether a room may not use another one."""
    if source == target:
        return False
    own, other = layer_of(source, layers), layer_of(target, layers)
    return own is None or other is None or other >= own


def room(module):
    return module.partition(".")[0]


def crossings(found):
    """Imports of rooms that are not below; the root and the native module are everybody's."""
    return [
        str(imported)
        for imported in found
        if imported.source and imported.target not in ("", "_native")
        if goes_up(room(imported.source), room(imported.target), LAYERS)
    ]


def private_imports(found):
    return [
        str(imported)
        for imported in found
        if imported.name.startswith("_") and not imported.name.startswith("__")
        if room(imported.source) != room(imported.target) or not imported.source
    ]


def private_attributes(trees):
    """Private attributes that are read where no class of the package's room defines them."""
    defined = {}
    for module, tree in trees.items():
        names = defined.setdefault(room(module), set())
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                names.add(node.name)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                names.add(node.attr)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names.add(node.id)
    return [
        f"{module}: .{node.attr}"
        for module, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and re.match(r"_[^_]", node.attr)
        if node.attr not in defined[room(module)]
    ]


def cycles(edges):
    """One line per knot of modules that need each other, whatever the place of the import."""
    targets = {}
    for source, target in edges:
        if source != target:
            targets.setdefault(source, set()).add(target)
    reach = {}

    def reachable(start):
        if start not in reach:
            seen, stack = set(), [start]
            while stack:
                for target in targets.get(stack.pop(), ()):
                    if target not in seen:
                        seen.add(target)
                        stack.append(target)
            reach[start] = seen
        return reach[start]

    knots = {
        tuple(sorted({value} | {other for other in reachable(value) if value in reachable(other)}))
        for value in targets
        if value in reachable(value)
    }
    return [" <-> ".join(knot) for knot in sorted(knots)]


def module_cycles(found, trees):
    """The root, whose table names modules, is no part of a cycle; packages stand for themselves."""
    return cycles(
        (imported.source, imported.target)
        for imported in found
        if imported.source and imported.target in trees
    )


def native_in_words(found):
    """Modules that only put questions and words together, and call the native module."""
    return sorted(
        {
            imported.source
            for imported in found
            if imported.target == "_native" and imported.source.rpartition(".")[2] in WITHOUT_NATIVE
            if room(imported.source) in LENSES
        }
    )


def exports_of_lenses(trees):
    """Lens packages that hold more than their docstring."""
    return [
        lens
        for lens in sorted(LENSES)
        if lens in trees and len(getattr(trees[lens], "body", ())) > 1
    ]


def _last_name(node):
    return ast.unparse(node).split("(")[0].split(".")[-1]


def _begins_with_one(node):
    """Return whether it is a sum that begins with 1."""
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        node = node.left
        if isinstance(node, ast.Constant) and node.value == 1:
            return True
    return False


def pvalues_elsewhere(trees):
    """Where replicates are made into p-values, or p-values compared with levels, elsewhere."""
    found = []
    for module, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
                home = "inference.pvalues"
                is_one = _begins_with_one(node.left) and _begins_with_one(node.right)
            elif isinstance(node, ast.Compare):
                home = "results.verdict"
                names = [_last_name(part) for part in (node.left, *node.comparators)]
                is_one = any(name == "p" or "pvalue" in name for name in names) and any(
                    name.endswith(("level", "alpha")) for name in names
                )
            else:
                continue
            if is_one and module != home:
                found.append(f"{module}: {ast.unparse(node)}")
    return found


def positional_dataclasses(trees):
    """Dataclasses of many fields that can be made by position, by module and name."""
    found = []
    for module, tree in trees.items():
        for node in ast.walk(tree):
            if not isinstance(node, ast.ClassDef):
                continue
            marks = [ast.unparse(value) for value in node.decorator_list]
            if not any(mark.startswith("dataclass") for mark in marks):
                continue
            fields = [
                value
                for value in node.body
                if isinstance(value, ast.AnnAssign)
                and "ClassVar" not in ast.unparse(value.annotation)
                if not (value.value is not None and "init=False" in ast.unparse(value.value))
            ]
            kinds = [ast.unparse(field.annotation) for field in fields]
            if "KW_ONLY" in kinds:
                fields = fields[: kinds.index("KW_ONLY")]
            if len(fields) > MOST_FIELDS and not any("kw_only=True" in mark for mark in marks):
                found.append(f"{module}.{node.name}")
    return found


def classes(trees):
    """Yield the module and the node of every class."""
    for module, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                yield module, node


def homonyms(trees):
    """List class names that several definitions share, whatever the underscores before them."""
    places = {}
    for module, node in classes(trees):
        places.setdefault(node.name.lstrip("_"), []).append(module)
    return [
        f"{name}: {', '.join(modules)}"
        for name, modules in sorted(places.items())
        if len(modules) > 1
    ]


def constructors_called_of(trees):
    """List classes with a method called `of`; `from_rows` says from what a class is made."""
    return [
        f"{module}.{node.name}.of"
        for module, node in classes(trees)
        for member in node.body
        if isinstance(member, ast.FunctionDef) and member.name == "of"
    ]


def loops_over_one(trees):
    """List loops and comprehensions whose variable is called `one`, and not by its noun."""
    found = []
    for module, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.For | ast.comprehension):
                targets = [part for part in ast.walk(node.target) if isinstance(part, ast.Name)]
                if any(target.id == "one" for target in targets):
                    found.append(
                        f"{module}: for {ast.unparse(node.target)} in {ast.unparse(node.iter)}"
                    )
    return found


def participle_classes(trees):
    """List classes that are called by a participle alone."""
    return [
        f"{module}.{node.name}"
        for module, node in classes(trees)
        if PARTICIPLE.fullmatch(node.name)
    ]


def hidden_trains(root=PYTHON):
    """Files with lines that the formatter must leave alone; pictures are tables of data."""
    return [
        str(path.relative_to(root))
        for path in sorted(root.rglob("*.py"))
        if path.name != "chart.py" and "fmt: skip" in path.read_text(encoding="utf-8")
    ]


def long_files(root=PYTHON, most=MOST_LINES, ending="*.py"):
    """Files of more lines than one topic takes; tests at the end of a Rust file do not count."""
    found = []
    for path in sorted(root.rglob(ending)):
        text = path.read_text(encoding="utf-8").partition("\n#[cfg(test)]\nmod tests {")[0]
        n_lines = text.count("\n")
        if n_lines > most and path.name != "tests.rs":
            found.append(f"{path.relative_to(root)}: {n_lines}")
    return found


# -- the core ----------------------------------------------------------------------------------


def _without_tests(text):
    """Rust without comments and without what only tests see."""
    text = re.sub(r"//[^\n]*", "", text)
    return re.sub(r"#\[cfg\(test\)\]\s*mod \w+ \{.*?\n\}", "", text, flags=re.S)


def _heads(path_text):
    """The first modules named by what follows `crate::`: `a::b`, or `{a::b, c}`."""
    if not path_text.startswith("{"):
        return [re.match(r"\w+", path_text).group()]
    depth, entry, entries = 0, "", []
    for letter in path_text:
        if letter == "{":
            depth += 1
            if depth == 1:
                continue
        elif letter == "}":
            depth -= 1
            if depth == 0:
                break
        if depth == 1 and letter == ",":
            entries.append(entry)
            entry = ""
        else:
            entry += letter
    return [re.match(r"\w+", name.strip()).group() for name in [*entries, entry] if name.strip()]


def core_imports(root=CORE):
    """(module, module, file) of every use of another top-level module of the crate."""
    known = {path.stem if path.is_file() else path.name for path in root.iterdir()} - {"lib"}
    found = []
    for path in sorted(root.rglob("*.rs")):
        parts = path.relative_to(root).with_suffix("").parts
        if parts == ("lib",) or parts[-1] == "tests":
            continue
        text = _without_tests(path.read_text(encoding="utf-8"))
        for match in re.finditer(r"\bcrate::(\{|\w+)", text):
            for head in _heads(text[match.start(1) :]):
                # Error and Result stand at the root of the crate.
                target = "error" if head in ("Error", "Result") else head
                if target in known and target != parts[0]:
                    found.append((parts[0], target, "/".join(parts)))
    return sorted(set(found))


def core_crossings(found):
    return [
        f"{file} -> {target}"
        for source, target, file in found
        if goes_up(source, target, CORE_LAYERS)
    ]


def core_cycles(found):
    return cycles((source, target) for source, target, _ in found)


def rayon_outside_of_parallel(root=CORE):
    return [
        str(path.relative_to(root))
        for path in sorted(root.rglob("*.rs"))
        if path.name not in ("parallel.rs", "tests.rs")
        if "rayon" in _without_tests(path.read_text("utf-8"))
    ]
