"""Wire structs of questions and answers: the documented forms, and those of NLWeb beside them."""

from typing import Annotated, Any, Literal

import msgspec

from countersign.distribution.ask.answers import Source
from countersign.distribution.ask.query import Query

LONGEST = 2_000
Question = Annotated[
    str,
    msgspec.Meta(
        min_length=1,
        max_length=LONGEST,
        description="A question in plain words about products and their releases.",
        examples=["Which games run on Linux?"],
    ),
]
Short = Annotated[str, msgspec.Meta(max_length=LONGEST)]
Mode = Annotated[
    Literal["list", "summarize", "generate"],
    msgspec.Meta(
        description="`list` and `summarize` answer from the catalog; `generate` has a model word the answer, where one "
        "is configured."
    ),
]
Streamed = Annotated[bool, msgspec.Meta(description="Whether the answer is a stream of server-sent events.")]
QueryId = Annotated[str, msgspec.Meta(max_length=200, description="An id of the caller's for the question.")]
Unused = Annotated[Short, msgspec.Meta(description="NLWeb; taken, without effect.")]


class Asking(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """How POST /ask is to answer: as a stream of events, or as one object."""

    stream: Streamed = False


class Asked(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The parameters of GET /ask: the question, and whether the answer is to be a stream of events."""

    q: Question
    stream: Streamed = False
    mode: Mode | None = None
    query_id: QueryId | None = None


class NlwebAsked(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What clients of NLWeb send to the /ask at a site's root."""

    query: Question
    site: Unused | None = None
    prev: Unused | None = None
    decontextualized_query: Unused | None = None
    streaming: Streamed | None = None
    mode: Mode | None = None
    generate_mode: Mode | None = None
    query_id: QueryId | None = None


class Nested(msgspec.Struct):
    """A question as NLWeb 0.5 nests it."""

    text: Question


class Preferred(msgspec.Struct, forbid_unknown_fields=True):
    """What an NLWeb client prefers; language, form and agent change nothing."""

    streaming: bool = False
    mode: Mode = "list"
    response_format: Short | None = None
    accept_language: Short | None = msgspec.field(default=None, name="accept-language")
    user_agent: Short | None = msgspec.field(default=None, name="user-agent")


class Context(msgspec.Struct, forbid_unknown_fields=True):
    """What was said before, as NLWeb tells it; each question is answered by itself."""

    type: Short | None = msgspec.field(default=None, name="@type")
    prev: Short | list[str] | None = None
    text: Short | None = None
    memory: Any = None


class Meta(msgspec.Struct, forbid_unknown_fields=True):
    """Which NLWeb a client speaks."""

    version: Short | None = None
    api_version: Short | None = None
    session_context: dict[str, Any] | None = None


class AskBody(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A question, in plain words; the members beside `query` are NLWeb's."""

    query: Question
    streaming: Streamed | None = None
    mode: Mode | None = None
    generate_mode: Mode | None = None
    query_id: QueryId | None = None


class NlwebBody(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A question as clients of NLWeb send it to the /ask at a site's root: flat, or nested in an object."""

    query: Question | Nested
    site: Short | None = None
    prev: Short | list[str] | None = None
    decontextualized_query: Short | None = None
    streaming: Streamed | None = None
    mode: Mode | None = None
    generate_mode: Mode | None = None
    query_id: QueryId | None = None
    context: Context | None = None
    prefer: Preferred | None = None
    meta: Meta | None = None


class Result(msgspec.Struct):
    """A product or release of an answer, as NLWeb lists it; `schema_object` is of schema.org, `score` 0…100."""

    url: str
    name: str
    site: str
    score: int
    description: str
    schema_object: dict[str, Any]


class AskAnswer(msgspec.Struct):
    """An answer, what it is from, and the typed query that was run (null: the question was not understood)."""

    answer: str
    sources: list[Source]
    query: Query | None
    confidence: float
    query_id: str
    results: list[Result]


class AnswerMeta(msgspec.Struct):
    """What kind of NLWeb answer this is."""

    response_type: Literal["answer", "elicitation", "failure"]
    version: str = "0.54"


class NlwebAnswer(msgspec.Struct, omit_defaults=True, kw_only=True):
    """The answer to a nested question."""

    meta: AnswerMeta = msgspec.field(name="_meta")
    query_id: str
    results: list[dict[str, Any]] = []
    answer: str | None = None
    elicitation: dict[str, Any] | None = None
    error: dict[str, str] | None = None
