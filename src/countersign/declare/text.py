"""Module text: a module as Python source with classes, calls of declaration words and literals. It is parsed and never
executed, so that reading an untrusted text runs no code."""

import ast
import io
import keyword
import re
import threading
import tokenize
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import new_class
from typing import Final, TypeAlias, cast

from countersign import declare
from countersign.declare import arguments
from countersign.declare.errors import DeclarationError
from countersign.declare.model import Model, ModelOptions
from countersign.declare.module import Module

MAX_BYTES = 1_048_576
MAX_TOKENS = 200_000
MAX_NESTING = 20
MAX_NUMBER_LENGTH = 20
LINE_LENGTH = 120
_ANY_LENGTH = 10 * MAX_BYTES
_COMMENT_CHARACTERS = "\t\u00ad\u200b\u200c\u200d"
"""Characters that comments may contain although they are not printable: the tab, the soft hyphen, joiners and
non-joiners."""

_PARSER = threading.Lock()
"""Held during a parse. In Python before 3.11.9, threads share the recursion counter of the parser, so that one of two
concurrent parses can fail with a SystemError (CPython issue 106905)."""

PACKAGE = "countersign.declare"
CODE_WORDS: Final = ("check", "on")
"""The words that attach code to a model."""
_NOT_IN_TEXT = (
    *("BadValue", "DeclarationError", "Declared", "Field", "Notation", "Stored", "Structure", "Work"),
    *CODE_WORDS,
)
WORDS: Final = tuple(name for name in declare.__all__ if name not in _NOT_IN_TEXT)
"""The names of `countersign.declare` that a module text may use."""


@dataclass(frozen=True, slots=True)
class Name:
    """A name: a constant of the declaration language (TODAY), or a model class in the list of models."""

    name: str


@dataclass(frozen=True, slots=True)
class Dictionary:
    """A dictionary literal."""

    items: "tuple[tuple[Value, Value], ...]" = ()


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a declaration word."""

    word: str
    arguments: "tuple[Value, ...]" = ()
    options: "tuple[tuple[str, Value], ...]" = ()


Value: TypeAlias = "None | bool | int | str | Name | Call | Dictionary | tuple[Value, ...]"


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment on a line of its own."""

    text: str


@dataclass(frozen=True, slots=True)
class FieldText:
    """One field or the workflow of a model: its name, its declaration and the comment at the end of its line."""

    name: str
    call: Call
    comment: str = ""


@dataclass(frozen=True, slots=True)
class ModelText:
    """The class of a model: the name of the class, the options of the class statement, the docstring and the body."""

    class_name: str
    options: tuple[tuple[str, Value], ...] = ()
    summary: str = ""
    body: tuple[FieldText | Comment, ...] = ()


@dataclass(frozen=True, slots=True)
class ModuleText:
    """A module text: its docstring, its models with the comments between them, and the call of `Module`."""

    summary: str
    body: tuple[ModelText | Comment, ...]
    module: Call

    @property
    def models(self) -> tuple[ModelText, ...]:
        """Return the models without the comments."""
        return tuple(statement for statement in self.body if isinstance(statement, ModelText))


class TextError(Exception):
    """The module text cannot be read. The text names the line and the remedy."""

    def __init__(self, text: str, line: int = 0) -> None:
        super().__init__(f"line {line}: {text}" if line else text)


def printable(text: str) -> str:
    """Return the text without surrounding white space, on one line, with characters that are not printable replaced by
    U+FFFD. Comments contain names of a database in this form."""
    return "".join(character if character.isprintable() else "\ufffd" for character in text).strip()


def _comment(text: str) -> str:
    """Return the comment on one line, but keep tabs, blanks and joiners that a person has written."""
    return "".join(
        character if character.isprintable() or _is_of_comment(character) else "\ufffd" for character in text
    ).strip()


def _is_of_comment(character: str) -> bool:
    return character in _COMMENT_CHARACTERS or unicodedata.category(character) == "Zs"


def write(module: ModuleText) -> str:
    """Return the source of the module text. It is the inverse of `read`.

    Raises:
        ValueError: a comment has a control character, or a name is not a Python name.
    """
    parts = [_docstring(module.summary), ""] if module.summary else []
    used = sorted({"Model"} | set(_words(module)))
    parts += [_statement(f"from {PACKAGE} import ", [*used], "", 0, wraps="()"), ""]
    for at, statement in enumerate(module.body):
        is_first = at == 0 or isinstance(module.body[at - 1], ModelText)
        if isinstance(statement, ModelText):
            parts += ["", *_model_lines(statement), ""]
        else:
            parts += [*([""] if is_first else []), f"# {_checked_comment(statement.text)}"]
    parts += [""] if module.body and isinstance(module.body[-1], Comment) else []
    parts += ["", f"module = {_source(module.module, len('module = '), 0)}", ""]
    return "\n".join(parts)


def read(text: str, source: str = "the module text") -> ModuleText:
    """Parse a module text.

    Raises:
        TextError: the text is longer or more deeply nested than a module text may be, or contains anything but
            classes, declaration words and literals.
    """
    comments = _scanned(text)
    try:
        with _PARSER:
            tree = ast.parse(text, source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = (error.lineno or 0) if isinstance(error, SyntaxError) else 0
        raise TextError("it is not valid Python: correct the line", line) from error
    return _Reader(comments).module(tree.body)


def build(text: ModuleText, source: str) -> Module:
    """Create the module that the text declares. `source` is the file of the text.

    Raises:
        DeclarationError: an option of a declaration word does not exist, or has a value of the wrong type.
    """
    builder = _Builder(source)
    models = {model.class_name: builder.model(model) for model in text.models}
    module = builder.value(text.module, models)
    if not isinstance(module, Module):
        raise DeclarationError(f'{source}: it ends with no module = Module("name", …): add it')
    module.source, module.is_text = source, True
    return module


# Writing


def quoted(text: str) -> str:
    """Return a string literal on one line, with characters that are not printable escaped. It has double quotes, unless
    the text contains double quotes and no single quotes."""
    quote = "'" if '"' in text and "'" not in text else '"'
    return f"{quote}{_escaped(text, keeps=chr(34) if quote != chr(34) else '')}{quote}"


def _escaped(text: str, keeps: str = "") -> str:
    return "".join(character if character in keeps else _escape(character) for character in text)


def _escape(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    if character.isprintable():
        return character
    known = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(character)
    code = ord(character)
    return known or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}")


def source_line(field: FieldText) -> str:
    """Return the declaration of the field on one line of any length, without its comment."""
    return f"{_checked_name(field.name)} = {_source(field.call, -_ANY_LENGTH, -_ANY_LENGTH)}"


def commented_line(field: FieldText) -> str:
    """Return the declaration of the field on one line of any length, with its comment."""
    return source_line(field) + (f"  # {field.comment}" if field.comment else "")


def _docstring(text: str) -> str:
    return f'"""{_escaped(text, keeps=chr(10))}"""'


def _model_lines(model: ModelText) -> Iterator[str]:
    options = [_option(name, value, 4) for name, value in model.options]
    yield _statement(f"class {_checked_name(model.class_name)}", ["Model", *options], ":", 0)
    if model.summary:
        yield f"    {_docstring(model.summary)}"
        yield ""
    for statement in model.body:
        if isinstance(statement, Comment):
            yield f"    # {_checked_comment(statement.text)}"
        else:
            start = f"    {_checked_name(statement.name)} = "
            comment = f"  # {_checked_comment(statement.comment)}" if statement.comment else ""
            yield f"{start}{_source(statement.call, len(start), 4)}{comment}"
    if not any(isinstance(statement, FieldText) for statement in model.body):
        yield "    pass" if not model.summary else ""


def _source(value: Value, column: int, indent: int) -> str:
    """Return the source of a value. `column` is the position at which it begins, and `indent` the indentation of its
    statement."""
    inner = indent + 4
    match value:
        case Call():
            parts = [
                *_sources(value.arguments, inner),
                *(_option(name, option_value, inner) for name, option_value in value.options),
            ]
            return _statement(_checked_name(value.word), parts, "", indent, column=column)
        case Dictionary():
            parts = [_item(key, entry_value, inner) for key, entry_value in value.items]
            return _statement("", parts, "", indent, brackets="{}", column=column)
        case tuple():
            single = "," if len(value) == 1 else ""
            return _statement("", _sources(value, inner), "", indent, column=column, single=single)
        case Name():
            return _checked_name(value.name)
        case str():
            return quoted(value)
        case _:
            return repr(value)


def _sources(values: Iterable[Value], indent: int) -> list[str]:
    return [_source(value, indent, indent) for value in values]


def _item(key: Value, value: Value, indent: int) -> str:
    return f"{_source(key, indent, indent)}: {_source(value, indent + 2, indent)}"


def _option(name: str, value: Value, indent: int) -> str:
    return f"{_checked_name(name)}={_source(value, indent + len(name) + 1, indent)}"


def _statement(
    start: str,
    parts: Sequence[str],
    end: str,
    indent: int,
    *,
    brackets: str = "()",
    column: int = 0,
    single: str = "",
    wraps: str = "",
) -> str:
    """Return the parts in brackets: on one line if it is long enough, otherwise with each part on a separate line. With
    `wraps`, brackets are omitted if one line is enough."""
    opening, closing = ("", "") if wraps else brackets
    line = f"{start}{opening}{', '.join(parts)}{single}{closing}{end}"
    if column + len(line) <= LINE_LENGTH and "\n" not in line:
        return line
    space = " " * (indent + 4)
    rows = "".join(f"{space}{part},\n" for part in parts)
    return f"{start}{brackets[0]}\n{rows}{' ' * indent}{brackets[1]}{end}"


def _words(module: ModuleText) -> Iterator[str]:
    """Yield the declaration words in the module text."""
    values: list[Value] = [module.module]
    for model in module.models:
        values += [value for _, value in model.options]
        values += [statement.call for statement in model.body if isinstance(statement, FieldText)]
    while values:
        value = values.pop()
        values += _parts(value)
        if isinstance(value, Call):
            yield value.word
        elif isinstance(value, Name) and value.name in WORDS:
            yield value.name


def _parts(value: Value) -> tuple[Value, ...]:
    """Return the values inside a value."""
    match value:
        case Call():
            return (*value.arguments, *(option_value for _, option_value in value.options))
        case Dictionary():
            return tuple(element for item in value.items for element in item)
        case tuple():
            return value
        case _:
            return ()


def _checked_name(name: str) -> str:
    if not name.isascii() or not name.isidentifier() or keyword.iskeyword(name):
        raise ValueError(f"{name!r} is not a name")
    return name


def _checked_comment(text: str) -> str:
    if text != _comment(text):
        raise ValueError(f"{text!r} is not a comment")
    return text


# Reading


@dataclass(frozen=True, slots=True)
class _CommentToken:
    """A comment of the source, with its position."""

    line: int
    column: int
    text: str
    is_alone: bool


_OPERATORS = frozenset("()[]{},=:-.")
_KEYWORDS = frozenset({"class", "from", "import", "pass", "None", "True", "False"})
_CODE_TOKENS = frozenset({"@", "def", "async", "lambda"})
_CODE_REMEDY = "remove it, or declare the model in a package"
_IGNORED = (tokenize.NEWLINE, tokenize.NL, tokenize.DEDENT, tokenize.ENDMARKER, tokenize.ENCODING)
_BEFORE_LIST = frozenset("([{,=:")
_AFTER_ALL = MAX_BYTES + 2
"""A line number greater than that of any line."""


def _scanned(text: str) -> list[_CommentToken]:
    """Check the tokens of the text, and return its comments.

    The parser of Python is recursive, so the check limits the depth of nesting: it refuses operators, attributes, calls
    of calls and deeply nested brackets.

    Raises:
        TextError: the text is too long, or contains a token that no module text contains.
    """
    try:
        size_bytes = len(text.encode())
    except UnicodeEncodeError as error:
        raise TextError("it is not valid Unicode: correct the text") from error
    if size_bytes > MAX_BYTES:
        raise TextError(f"it has more than {MAX_BYTES} bytes: divide it into several modules")
    if "\0" in text or "\f" in text:
        raise TextError("it contains a control character: remove it")
    scanner = _Scanner()
    try:
        for number, token in enumerate(tokenize.generate_tokens(io.StringIO(text).readline)):
            if number >= MAX_TOKENS:
                raise TextError(f"it has more than {MAX_TOKENS} tokens: divide it into several modules")
            scanner.add(token)
    except (tokenize.TokenError, SyntaxError) as error:
        line = (error.lineno or 0) if isinstance(error, SyntaxError) else 0
        raise TextError("it is not valid Python: correct the brackets, quotes and indents", line) from error
    return scanner.comments


class _Scanner:
    """Checks one token after the other, and collects the comments."""

    def __init__(self) -> None:
        self.comments: list[_CommentToken] = []
        self._depth = 0
        self._indent = 0
        self._previous = ""

    def add(self, token: tokenize.TokenInfo) -> None:
        """Check the next token.

        Raises:
            TextError: no module text contains this token here.
        """
        line = token.start[0]
        if token.type == tokenize.COMMENT:
            is_alone = not token.line[: token.start[1]].strip()
            self.comments.append(_CommentToken(line, token.start[1], _comment(token.string[1:]), is_alone))
            return
        if token.type == tokenize.INDENT:
            self._indent += 1
        elif token.type == tokenize.DEDENT:
            self._indent -= 1
        _refuse_code(token)
        is_known = token.type in _IGNORED or (token.type == tokenize.INDENT and self._indent == 1)
        if not is_known and not self._is_allowed(token):
            raise TextError("a module text has only classes, declaration words and literals: remove the rest", line)
        if token.type not in (tokenize.NL, tokenize.INDENT, tokenize.DEDENT):
            self._previous = token.string
        if self._depth > MAX_NESTING:
            raise TextError(f"brackets are nested more than {MAX_NESTING} deep: simplify the declaration", line)

    def _is_allowed(self, token: tokenize.TokenInfo) -> bool:
        text = token.string
        if token.type == tokenize.NAME:
            return not keyword.iskeyword(text) or text in _KEYWORDS
        if token.type == tokenize.STRING:
            return text[0] in "\"'"
        if token.type == tokenize.NUMBER:
            return len(text) <= MAX_NUMBER_LENGTH and text.isdecimal()
        return token.type == tokenize.OP and text in _OPERATORS and self._is_operator_allowed(text)

    def _is_operator_allowed(self, text: str) -> bool:
        if text in "([{":
            self._depth += 1
        elif text in ")]}":
            self._depth -= 1
        if text == ".":
            return self._previous == PACKAGE.partition(".")[0]
        if text == "-" or text == "[":
            return self._previous in _BEFORE_LIST
        return text != "(" or (self._previous not in (")", "]", "}") and self._previous[-1:] not in ('"', "'"))


def _refuse_code(token: tokenize.TokenInfo) -> None:
    if token.string in _CODE_TOKENS and token.type in (tokenize.OP, tokenize.NAME):
        raise TextError(f"a module text has no code: {_CODE_REMEDY}", token.start[0])


class _Reader:
    """Converts the syntax tree to a module text."""

    def __init__(self, comments: Sequence[_CommentToken]) -> None:
        self._comments = comments
        self._position = 0
        self._skipped: list[_CommentToken] = []

    def module(self, statements: Sequence[ast.stmt]) -> ModuleText:
        """Return the module text.

        Raises:
            TextError: a module text cannot contain one of the statements.
        """
        summary, rest = _split_docstring(statements)
        body: list[ModelText | Comment] = []
        module: Call | None = None
        for number, statement in enumerate(rest):
            following = rest[number + 1].lineno if number + 1 < len(rest) else None
            if isinstance(statement, ast.ClassDef):
                body += map(Comment, self._take_before(statement.lineno))
                body.append(self._model(statement, following))
            elif isinstance(statement, ast.ImportFrom):
                _check_import(statement)
            elif module is None:
                module = self._module_call(statement)
            else:
                raise TextError("`module = …` is the last statement: move the rest before it", statement.lineno)
        if module is None:
            raise TextError('it has no module = Module("name", …): add it as the last statement')
        body += map(Comment, self._take_before(_AFTER_ALL))
        return ModuleText(summary, tuple(body), module)

    def _take_before(self, line: int) -> list[str]:
        """Take the remaining comments before the line."""
        taken = [*self._skipped, *self._passed(line)]
        self._skipped = []
        return [comment.text for comment in taken]

    def _take_indented_before(self, line: int) -> list[str]:
        """Take the remaining indented comments before the line. Other comments are left for `_take_before`."""
        passed = self._passed(line)
        self._skipped += [comment for comment in passed if not comment.column]
        return [comment.text for comment in passed if comment.column]

    def _passed(self, line: int) -> Sequence[_CommentToken]:
        """Move the position to the first comment that is not before the line, and return the comments in between."""
        start = self._position
        while self._position < len(self._comments) and self._comments[self._position].line < line:
            self._position += 1
        return self._comments[start : self._position]

    def _module_call(self, statement: ast.stmt) -> Call:
        name, value = _assignment(statement)
        if name != "module" or not isinstance(value, ast.Call):
            raise TextError("only classes of models and `module = Module(…)` are possible here", statement.lineno)
        return _call(value)

    def _model(self, node: ast.ClassDef, following: int | None) -> ModelText:
        is_plain = [ast.dump(base) for base in node.bases] == [ast.dump(ast.Name("Model", ast.Load()))]
        if not is_plain or node.decorator_list:
            raise TextError(f"write class {node.name}(Model, …)", node.lineno)
        summary, statements = _split_docstring(node.body)
        body: list[FieldText | Comment] = []
        for statement in statements:
            if isinstance(statement, ast.Pass):
                continue
            body += self._field(statement)
        # A comment of the class is indented, unlike a comment between classes.
        body += map(Comment, self._take_indented_before(following or _AFTER_ALL))
        return ModelText(node.name, _options(node.keywords), summary, tuple(body))

    def _field(self, statement: ast.stmt) -> list[FieldText | Comment]:
        """Return the field with the comments before and inside it."""
        name, value = _assignment(statement)
        if not isinstance(value, ast.Call):
            raise TextError(f"{name} must be a field, such as Text()", statement.lineno)
        end = statement.end_lineno or statement.lineno
        comments = self._take_indented_before(end)
        following = self._comments[self._position : self._position + 1]
        last = [comment.text for comment in following if comment.line == end and not comment.is_alone]
        self._position += len(last)
        return [*map(Comment, comments), FieldText(name, _call(value), last[0] if last else "")]


def _split_docstring(statements: Sequence[ast.stmt]) -> tuple[str, Sequence[ast.stmt]]:
    first = statements[0] if statements else None
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        return first.value.value, statements[1:]
    return "", statements


def _check_import(statement: ast.ImportFrom) -> None:
    if statement.module != PACKAGE or statement.level:
        raise TextError(f"a module text imports from {PACKAGE} alone: remove the import", statement.lineno)
    for alias in statement.names:
        if alias.name in CODE_WORDS:
            reason = f"{alias.name} is for code, which only a package can have"
            raise TextError(f"{reason}: {_CODE_REMEDY}", statement.lineno)
        if alias.name not in WORDS or alias.asname:
            raise TextError(f"{PACKAGE} has no declaration word {alias.name!r}: remove it", statement.lineno)


def _assignment(statement: ast.stmt) -> tuple[str, ast.expr]:
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = statement.targets[0]
        if isinstance(target, ast.Name) and target.id.isascii():
            return target.id, statement.value
    raise TextError("only `name = Word(…)` is possible here: remove the statement", statement.lineno)


def _call(node: ast.Call) -> Call:
    if not isinstance(node.func, ast.Name) or node.func.id not in WORDS:
        raise TextError(f"only words of {PACKAGE} can be called: correct the word", node.lineno)
    return Call(node.func.id, tuple(map(_value, node.args)), _options(node.keywords))


def _options(keywords: Sequence[ast.keyword]) -> tuple[tuple[str, Value], ...]:
    options: list[tuple[str, Value]] = []
    for option in keywords:
        if option.arg is None:
            raise TextError("write each option by its name", option.lineno)
        if option.arg in (name for name, _ in options):
            raise TextError(f"{option.arg} is given twice: remove one", option.lineno)
        options.append((option.arg, _value(option.value)))
    return tuple(options)


def _value(node: ast.expr) -> Value:
    match node:
        case ast.Constant(value=None | bool() | int() | str() as literal):
            return literal
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as number)):
            return -number
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            return tuple(map(_value, elements))
        case ast.Dict(keys=keys) if None not in keys:
            named = (_value(key) for key in keys if key is not None)
            return Dictionary(tuple(zip(named, map(_value, node.values), strict=True)))
        case ast.Call():
            return _call(node)
        case ast.Name():
            return Name(node.id)
        case _:
            pass
    raise TextError("only literals and declaration words are possible here: correct the value", node.lineno)


# Objects


class _Builder:
    """Creates the objects that a module text declares."""

    def __init__(self, source: str) -> None:
        self._source = source

    def model(self, text: ModelText) -> type[Model]:
        """Return the class of the model.

        Raises:
            DeclarationError: an option of the class or of a field is invalid.
        """
        fields = [
            (statement.name, self.value(statement.call, {}))
            for statement in text.body
            if isinstance(statement, FieldText)
        ]
        known: set[str] = set()
        for name, _ in fields:
            if name in known:
                raise DeclarationError(f"{self._source}: {text.class_name}.{name}: it is there twice: rename one")
            known.add(name)
        options = {name: self.value(value, {}) for name, value in text.options}

        def fill(namespace: dict[str, object]) -> None:
            namespace.update(fields, __doc__=text.summary)

        try:
            arguments.check_options(options, ModelOptions)
            model = cast(type[Model], new_class(text.class_name, (Model,), options, fill))
        except (TypeError, ValueError, AttributeError) as error:
            raise DeclarationError(f"{self._source}: {text.class_name}: {error}: correct the options") from error
        model.declared = replace(model.declared, source=self._source)
        return model

    def value(self, value: Value, models: Mapping[str, type[Model]]) -> object:
        """Create the object that the value describes.

        Raises:
            DeclarationError: a name is unknown, or an argument of a declaration word is invalid.
        """
        if isinstance(value, tuple):
            return tuple(self.value(element, models) for element in value)
        if isinstance(value, Dictionary):
            return self._dictionary(value, models)
        if isinstance(value, Name):
            return self._named(value.name, models)
        if isinstance(value, Call):
            given = [self.value(argument, models) for argument in value.arguments]
            options = {name: self.value(option_value, models) for name, option_value in value.options}
            word = getattr(declare, value.word)
            try:
                arguments.check(word, given, options)
                return word(*given, **options)
            except (TypeError, ValueError, AttributeError) as error:
                raise DeclarationError(f"{self._source}: {value.word}(…): {error}: correct the call") from error
        return value

    def _dictionary(self, value: Dictionary, models: Mapping[str, type[Model]]) -> dict[object, object]:
        keys = [self.value(key, models) for key, _ in value.items]
        if not all(isinstance(key, str | int) for key in keys):
            raise DeclarationError(f"{self._source}: a key of a dictionary is neither text nor a number: correct it")
        return dict(zip(keys, (self.value(entry_value, models) for _, entry_value in value.items), strict=True))

    def _named(self, name: str, models: Mapping[str, type[Model]]) -> object:
        if name in models:
            return models[name]
        if re.fullmatch("[A-Z][A-Z_]+", name) and name in WORDS:
            return getattr(declare, name)
        raise DeclarationError(f"{self._source}: {name} is not a model of the text: correct the name")
