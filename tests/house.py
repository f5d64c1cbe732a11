"""The style rules of this repository. A rule checks one Python file and yields each violation, with the remedy."""

import ast
import re
from collections.abc import Callable, Iterator

from tests.source import Source, dotted_name

Complaint = tuple[int, str]
"""A violation of a rule: the line number, and a text with the remedy."""

Rule = Callable[[Source], Iterator[Complaint]]
Function = ast.FunctionDef | ast.AsyncFunctionDef

FILE_LINES = 700
FUNCTION_LINES = 70
COMPLEXITY = 10
POSITIONAL = 6

DOMAIN_WORDS = {
    *("product", "release", "entitlement", "lead", "plan", "mask"),
    *("redeem", "catalog", "artifact", "buyer", "license"),
}
EMPTY_NAMES = {"util", "utils", "helper", "helpers", "manager", "managers", "misc"}

# Maps a package to a pattern of the files that may import it. Other files use the functions of these files.
ONLY_IN = {
    "apsw": r"kernel/database/sqlite\w*\.py",
    "asyncpg": r"kernel/database/postgres\w*\.py",
    "joserfc": r"kernel/security/(jose|external_jwt)\.py",
    "argon2": r"kernel/security/\w+\.py",
    # Masking implements its own use of ciphers: a keyed permutation of numbers for tokens, and one key for each value.
    "cryptography": r"(kernel/security|records/masking)/\w+\.py",
    "procrastinate": r"kernel/jobs/procrastinate\.py",
    "psycopg": r"kernel/jobs/procrastinate\.py",
    "opentelemetry": r"kernel/otlp\.py",
    "obstore": r"kernel/blobs/\w+\.py",
    "redis": r"kernel/(http|jobs|security)/\w+\.py",
    "uvicorn": r"(kernel/http|cli)/\w+\.py",
    "click": r"cli/((server|admin|client)/)?\w+\.py",
    "rich": r"cli/((server|admin|client)/)?\w+\.py",
    "time": r"kernel/clock\.py|kernel/ids\.py",
    "uuid": r"kernel/ids\.py",
    "random": r"kernel/ids\.py",
    "secrets": r"kernel/ids\.py|kernel/security/\w+\.py",
}
CLOCKS = re.compile(r"(datetime\.)?(datetime|date)\.(now|utcnow|today)|os\.urandom")

NOUNS_IN_ING = {
    *("billing", "embedding", "encoding", "masking", "numbering", "padding", "pricing", "processing"),
    *("rendering", "routing", "sampling", "setting", "signing", "string", "timing", "tracing"),
}
NOUNS_IN_ED = {"embed", "feed", "need", "seed", "shed", "speed"}
PARTICIPLES = {
    *("bound", "drawn", "found", "given", "held", "hung", "kept", "known", "lost", "made", "said", "seen", "sent"),
    *("shown", "sold", "taken", "told", "written"),
}
RIDDLES = {
    *("Asked", "Fault", "Found", "Hands", "Held", "Kept", "Made", "Place", "Said", "Shown", "Sight", "Taken", "Told"),
    *("Wanted", "Way", "Wound"),
}
# Maps a pattern of words that read as translated to better words.
STRANGE_WORDS = {
    r"nobody": "no one, or the role that is refused",
    r"whoever": "anyone who, or the role",
    r"told|tells": "reports, shows, returns or says which",
    r"stands(?! for)": "is",
    r"(?<!there )is none(?! of)": "does not exist, or is invalid",
    r"lets? go": "releases",
    r"is no \w+ of": "is not one of, or does not belong to",
    r"holds (?:for|true|until|when|if|only)": "is valid, or applies",
}
_STRANGE = re.compile("|".join(rf"(?P<w{at}>\b(?:{word})\b)" for at, word in enumerate(STRANGE_WORDS)), re.IGNORECASE)

_STATEMENT = re.compile(
    r"\s*(SELECT\s|INSERT\s+INTO\s|UPDATE\s+\S+\s+SET\s|DELETE\s+FROM\s|WITH\s+(RECURSIVE\s+)?\w+\s+AS\b"
    r"|(CREATE|ALTER|DROP)\s+(TABLE|INDEX|DATABASE|SCHEMA|UNIQUE)\b|PRAGMA\s)"
)
_STAR = re.compile(r"\bSELECT\s+(DISTINCT\s+)?(\w+\.)?\*", re.IGNORECASE)
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_LEFTOVER = re.compile(
    r"\b(TODO|FIXME|XXX|HACK)\b|(type|pyright):\s*ignore|\bnoqa\b|pragma:\s*no cover|NotImplementedError"
)
_WRITES = re.compile(r"\b(?:INSERT\s+(?:OR\s+\w+\s+)?INTO|DELETE\s+FROM|UPDATE)\s+([a-z_]\w*)")


def _functions(source: Source) -> Iterator[Function]:
    return (node for node in source.nodes if isinstance(node, Function))


def _docstrings(source: Source) -> set[ast.AST]:
    """Return every string that is a statement: the docstrings of modules, classes, functions and constants."""
    statements = (node.value for node in source.nodes if isinstance(node, ast.Expr))
    return {value for value in statements if isinstance(value, ast.Constant)}


def strings(source: Source) -> Iterator[ast.Constant]:
    """Yield every string that is not a docstring, including the constant parts of f-strings."""
    docstrings = _docstrings(source)
    for node in source.nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in docstrings:
            yield node


def short_files(source: Source) -> Iterator[Complaint]:
    """A file is at most FILE_LINES long."""
    lines = source.text.count("\n")
    if lines > FILE_LINES:
        yield lines, f"{lines} lines of at most {FILE_LINES}: move a part to its own file"


def short_functions(source: Source) -> Iterator[Complaint]:
    """A function is at most FUNCTION_LINES long and takes at most POSITIONAL parameters by position."""
    for node in _functions(source):
        lines = (node.end_lineno or node.lineno) - node.lineno + 1
        if lines > FUNCTION_LINES:
            text = f"{node.name} has {lines} lines of at most {FUNCTION_LINES}: move a step to its own function"
            yield node.lineno, text
        arguments = [*node.args.posonlyargs, *node.args.args]
        positional = [argument for argument in arguments if argument.arg not in ("self", "cls")]
        if len(positional) > POSITIONAL:
            text = f"{node.name} takes {len(positional)} parameters by position: make some keyword-only"
            yield node.lineno, text


def simple_functions(source: Source) -> Iterator[Complaint]:
    """A function's complexity (McCabe: 1 + branches + boolean operators) is at most COMPLEXITY."""
    is_test = source.path.startswith("tests/")
    for node in _functions(source):
        # The assertions of a test are not counted as branches.
        complexity = _complexity(node, skipped=ast.Assert if is_test else ())
        if complexity > COMPLEXITY:
            text = f"{node.name} has complexity {complexity} of at most {COMPLEXITY}: move a branch to its own function"
            yield node.lineno, text


_BRANCHES = (
    *(ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.Assert),
    ast.match_case,
)


def _complexity(function: Function, skipped: type[ast.AST] | tuple[()] = ()) -> int:
    total = 1
    waiting_nodes: list[ast.AST] = list(ast.iter_child_nodes(function))
    while waiting_nodes:
        node = waiting_nodes.pop()
        if isinstance(node, Function | ast.ClassDef | ast.Lambda):
            continue
        if isinstance(node, ast.BoolOp):
            total += len(node.values) - 1
        elif isinstance(node, ast.comprehension):
            total += 1 + len(node.ifs)
        elif isinstance(node, _BRANCHES) and not isinstance(node, skipped):
            total += 1
        waiting_nodes += ast.iter_child_nodes(node)
    return total


def kernel_without_domain(source: Source) -> Iterator[Complaint]:
    """Names and strings in the kernel contain no word of DOMAIN_WORDS.

    Key words of SQL in capitals (RELEASE, PLAN) and methods of libraries (`lock.release()`) are permitted.
    """
    if "/kernel/" not in source.path:
        return
    for line, name in _names(source):
        for word in _WORD.findall(name):
            if word.lower().removesuffix("s") in DOMAIN_WORDS:
                yield line, f"{name!r} contains {word!r}: the kernel must not know the domain; pass the value in"
    for node in strings(source):
        for word in re.findall(r"(?<![\w.])[a-z]+", str(node.value)):
            if word.removesuffix("s") in DOMAIN_WORDS:
                yield node.lineno, f"a string contains {word!r}: the kernel must not know the domain"


def _names(source: Source) -> Iterator[tuple[int, str]]:
    for node in source.nodes:
        if isinstance(node, Function | ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr


def columns_listed(source: Source) -> Iterator[Complaint]:
    """No SQL statement contains `select *`."""
    for node in strings(source):
        if _STAR.search(str(node.value)):
            yield node.lineno, "select *: list the columns"


def statements_without_values(source: Source) -> Iterator[Complaint]:
    """SQL is built only from constants (NAMES_IN_CAPITALS). Values are parameters ($1)."""
    for node in source.nodes:
        if _is_built_sql(node):
            text = "SQL is built from a name that is not a constant: pass values as $1, choose between constants"
            yield getattr(node, "lineno", 0), text


def _is_built_sql(node: ast.AST) -> bool:
    match node:
        case ast.JoinedStr() | ast.BinOp(op=ast.Add() | ast.Mod()):
            return _starts_sql(node) and not _is_constant(node)
        case ast.Call(func=ast.Attribute(attr="format", value=text)):
            call_arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
            return _starts_sql(text) and not all(map(_is_constant, call_arguments))
        case _:
            return False


def _starts_sql(node: ast.AST) -> bool:
    """Return whether the first part of the text begins an SQL statement."""
    if isinstance(node, ast.JoinedStr):
        text = "".join(str(piece.value) if isinstance(piece, ast.Constant) else "x" for piece in node.values)
        return _STATEMENT.match(text) is not None
    if isinstance(node, ast.BinOp):
        return _starts_sql(node.left)
    text = node.value if isinstance(node, ast.Constant) else None
    return isinstance(text, str) and _STATEMENT.match(text) is not None


def _is_constant(node: ast.AST) -> bool:
    match node:
        case ast.BinOp():
            return _is_constant(node.left) and _is_constant(node.right)
        case ast.JoinedStr():
            return all(map(_is_constant, node.values))
        case ast.Subscript(value=inner) | ast.FormattedValue(value=inner):
            return _is_constant(inner)
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name.isupper() and len(name) > 1
        case _:
            return isinstance(node, ast.Constant)


def restricted_imports(source: Source) -> Iterator[Complaint]:
    """Only the files in ONLY_IN import database drivers, cryptography, random numbers and the clock. Only app.py
    imports the routes of a feature."""
    for line, name in _imports(source):
        files = ONLY_IN.get(name.partition(".")[0])
        if files and not re.search(rf"countersign/({files})$", source.path):
            yield line, f"only {files} may import {name}: use the functions of these files"
        if re.search(r"countersign\.\w+\.\w+\.routes$", name) and not source.path.endswith("/app.py"):
            yield line, f"only app.py may import {name}: list the routes there"
    for node in source.nodes:
        if not isinstance(node, ast.Call):
            continue
        called_name = dotted_name(node.func)
        if CLOCKS.fullmatch(called_name) and not re.search(r"kernel/(clock|ids)\.py$", source.path):
            yield node.lineno, f"{called_name}(): call kernel.clock or kernel.ids, which tests can replace"


def _imports(source: Source) -> Iterator[tuple[int, str]]:
    for node in source.nodes:
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield node.lineno, node.module
            names = [alias.name for alias in node.names if alias.name == "routes"]
            yield from ((node.lineno, f"{node.module}.{name}") for name in names)


def broad_catches(source: Source) -> Iterator[Complaint]:
    """`except Exception` is permitted only at the edge of a process, or if the handler ends with `raise`."""
    for node in source.nodes:
        if isinstance(node, ast.ExceptHandler):
            names = ast.unparse(node.type) if node.type else "BaseException"
            raises = isinstance(node.body[-1], ast.Raise)
        elif isinstance(node, ast.Call) and dotted_name(node.func).endswith("suppress"):
            names, raises = ast.unparse(node), False
        else:
            continue
        if re.search(r"\b(Base)?Exception\b", names) and not raises:
            yield node.lineno, "this catches every error: catch the errors that you expect"


def errors_handled(source: Source) -> Iterator[Complaint]:
    """Every exception handler acts on the error."""
    for node in source.nodes:
        if isinstance(node, ast.ExceptHandler) and all(map(_does_nothing, node.body)):
            text = "the handler ignores an error: act on it, or use contextlib.suppress(TheError) if that is right"
            yield node.lineno, text


def _does_nothing(node: ast.stmt) -> bool:
    return isinstance(node, ast.Pass) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))


def modules_have_docstrings(source: Source) -> Iterator[Complaint]:
    """Line 1 of a module is a docstring that describes the content in one sentence."""
    docstring = ast.get_docstring(source.tree)
    summary = (docstring or "").partition("\n\n")[0].rstrip()
    if not docstring or source.tree.body[0].lineno != 1 or not summary.endswith((".", ":", "…")):
        yield 1, "line 1 must be a docstring: describe the content of the module in one sentence"


def public_names_have_docstrings(source: Source) -> Iterator[Complaint]:
    """Every public class, function and method has a docstring."""
    waiting_nodes: list[ast.AST] = [source.tree]
    while waiting_nodes:
        for node in ast.iter_child_nodes(waiting_nodes.pop()):
            if isinstance(node, ast.If | ast.Try | ast.With):
                waiting_nodes.append(node)
            if not isinstance(node, Function | ast.ClassDef) or node.name.startswith("_"):
                continue
            marks = " ".join(map(ast.unparse, node.decorator_list))
            if not ast.get_docstring(node) and "overload" not in marks and ".setter" not in marks:
                yield node.lineno, f"{node.name} has no docstring: describe what it does"
            if isinstance(node, ast.ClassDef):
                waiting_nodes.append(node)


def no_leftovers(source: Source) -> Iterator[Complaint]:
    """The source contains no reminders, disabled checks, prints or breakpoints."""
    for number, line in enumerate(source.text.splitlines(), 1):
        if leftover := _LEFTOVER.search(line):
            yield number, f"{leftover[0]}: finish the work, or remove the comment"
    for node in source.nodes:
        if isinstance(node, ast.Call) and dotted_name(node.func) in ("print", "breakpoint", "pdb.set_trace"):
            yield node.lineno, f"{dotted_name(node.func)}(): use the log, or click.echo"


def names_describe_content(source: Source) -> Iterator[Complaint]:
    """The name of a file or folder is not one of EMPTY_NAMES (utils, helpers, manager, …)."""
    for path_segment in source.path.removesuffix(".py").split("/"):
        if path_segment in EMPTY_NAMES:
            yield 1, f"{path_segment!r} does not describe the content: name the file after what it contains"


def nouns_for_modules(source: Source) -> Iterator[Complaint]:
    """The name of a module is a noun, not a participle (`told`, `hanging`, `settled`)."""
    last_word = source.path.removesuffix(".py").rpartition("/")[2].rpartition("_")[2]
    is_ing = last_word.endswith("ing") and last_word not in NOUNS_IN_ING
    is_ed = last_word.endswith("ed") and last_word not in NOUNS_IN_ED
    if last_word in PARTICIPLES or (len(last_word) > 4 and (is_ing or is_ed)):
        yield 1, f"{last_word!r} is a participle: name the module after what it contains"


def nouns_for_classes(source: Source) -> Iterator[Complaint]:
    """The name of a class is a noun that describes its instances, not a word of RIDDLES (`Asked`, `Kept`, `Way`)."""
    for node in source.nodes:
        if isinstance(node, ast.ClassDef) and node.name.removeprefix("_") in RIDDLES:
            yield node.lineno, f"{node.name}: name the class after its instances"


def public_classes(source: Source) -> set[str]:
    """Return the names of the public classes that the module declares."""
    names = {node.name for node in source.tree.body if isinstance(node, ast.ClassDef)}
    return {name for name in names if not name.startswith("_")}


def plain_words(source: Source) -> Iterator[Complaint]:
    """Texts and docstrings are in plain technical English. They contain no word of STRANGE_WORDS."""
    for node in source.nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from ((node.lineno, complaint) for complaint in strange_words(node.value))


def strange_words(text: str) -> Iterator[str]:
    """Yield each word of STRANGE_WORDS in the text, with better words."""
    for match in _STRANGE.finditer(text):
        remedy = [*STRANGE_WORDS.values()][int((match.lastgroup or "w0")[1:])]
        yield f"{match[0]!r} reads as translated: write {remedy}"


def tables_written(source: Source) -> Iterator[tuple[str, int]]:
    """Yield each table that an SQL statement of the file writes to, with the line number."""
    for node in strings(source):
        for table in _WRITES.findall(str(node.value)):
            yield table, node.lineno
