"""Did a move change anything? `python -m tests.compare_definitions REVISION [OLD=NEW ...]`.

Compares every top-level definition of the package with that of a revision, wherever it stands now:
the same source but for comments, layout and imports. Pairs are names that changed on purpose.
"""

import ast
import re
import subprocess
import sys
from collections import Counter

from .architecture import PYTHON, ROOT


def definitions(text):
    """(name, source) of every top-level definition, without imports inside."""
    found = []
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            name = node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            name = ast.unparse(target)
        else:
            continue
        if name == "__all__":
            continue
        for inner in ast.walk(node):
            if isinstance(getattr(inner, "body", None), list):
                kept = [
                    statement
                    for statement in inner.body
                    if not isinstance(statement, ast.ImportFrom)
                ]
                inner.body = kept or [ast.Pass()]
        found.append((name, ast.unparse(node)))
    return found


def of_revision(revision):
    run = {"cwd": ROOT, "capture_output": True, "text": True, "check": True}
    folder = str(PYTHON.relative_to(ROOT))
    names = subprocess.run(["git", "ls-tree", "-r", "--name-only", revision, folder], **run).stdout
    texts = (
        subprocess.run(["git", "show", f"{revision}:{name}"], **run).stdout
        for name in names.split()
        if name.endswith(".py")
    )
    return [definition for text in texts for definition in definitions(text)]


def of_tree():
    return [
        definition
        for path in sorted(PYTHON.rglob("*.py"))
        for definition in definitions(path.read_text(encoding="utf-8"))
    ]


def renamed(found, pairs):
    def new(text):
        for old, name in pairs.items():
            text = re.sub(rf"(?<![\w.]){re.escape(old)}\b", name, text)
        return text

    return [(new(name), ast.unparse(ast.parse(new(source)))) for name, source in found]


def differences(before, after):
    """Return what is gone, new or changed, by name."""
    old, new = Counter(before), Counter(after)
    gone, come = sorted((old - new).elements()), sorted((new - old).elements())
    names = {name for name, _ in come}
    changed = sorted({name for name, _ in gone if name in names})
    return {
        "changed": changed,
        "gone": [name for name, _ in gone if name not in changed],
        "new": [name for name, _ in come if name not in changed],
    }


def main():
    revision, *words = sys.argv[1:]
    pairs = dict(word.split("=") for word in words)
    for kind, names in differences(renamed(of_revision(revision), pairs), of_tree()).items():
        print(f"{kind}: {', '.join(names) or 'nothing'}")


if __name__ == "__main__":
    main()
