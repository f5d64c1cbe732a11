"""The words of questions: what each of them means, in one table for every place where they may stand."""

from typing import get_args

from countersign.distribution.ask.phrasetable import Phrases, said
from countersign.distribution.ask.pricewords import FREE, PAID
from countersign.distribution.ask.told import ANYTHING, AnyCondition, Either, Every, Licensed, Not, OfKind, On
from countersign.distribution.catalog.schemas import Platform

ALL_PLATFORMS: tuple[Platform, ...] = get_args(Platform)
_MOBILE = Either((On("android"), On("ios")))
_DESKTOP = Either((On("windows"), On("macos"), On("linux")))

KINDS: dict[str, AnyCondition] = {
    **said("game|games|video game|video games|computer game|computer games|videogame|videogames", OfKind("game")),
    **said("app|apps|application|applications", OfKind("app")),
    **said("tool|tools|utility|utilities", OfKind("tool")),
}
THINGS: dict[str, AnyCondition] = {
    **KINDS,
    **said(
        "anything to play|something to play|things to play|stuff to play|anything i can play|something i can play|"
        "anything playable|something playable|everything i can play|everything playable|things i can play",
        OfKind("game"),
    ),
    **said(
        "product|products|title|titles|product titles|game titles|products titles|thing|things|"
        "item|items|software|program|programs|programmes|anything|"
        "something|everything|stuff|one|ones|catalog entry|catalog entries|software products|pieces of software|"
        "software titles|those|them|entries",
        ANYTHING,
    ),
}
PLATFORMS: dict[str, AnyCondition] = {
    **said(
        "windows|win|microsoft windows|windows pcs|windows pc|windows machines|windows computers|"
        "windows laptop|windows laptops|windows computer|windows machine|pc|pcs",
        On("windows"),
    ),
    **said(
        "macos|mac os|mac|macs|os x|osx|mac os x|apple macos|macbook|macbooks|"
        "imac|mac computers|apple mac|apple macs|mac laptop|macintosh",
        On("macos"),
    ),
    **said("linux|gnu linux|gnu / linux|linux machines|linux machine|linux laptop|linux computer|"
        "linux box|linux boxes|linux pc|linux pcs|linux desktop|linux desktops|linux server|linux servers|"
        "linux laptops|"
        "linux computers|a linux system|linux system|linux systems",
        On("linux"),
    ),
    **said(
        "android|android phones|android devices|android phone|android tablets|android tablet|android device",
        On("android"),
    ),
    **said("ios|iphone|iphones|ipad|ipads|ios devices|ios device|iphone os|apple phone|apple phones", On("ios")),
    **said("web|browser|browsers|web browser|web browsers", On("web")),
    **said(
        "mobile|mobile devices|mobiles|phones|smartphones|mobile phones|mobile platforms|phone|smartphone|"
        "mobile phone|mobile device|a mobile platform|mobile platform",
        _MOBILE,
    ),
    **said("desktop|desktops|desktop computers|desktop platforms", _DESKTOP),
}
CHANNELS = {
    **said("stable|stables", "stable"),
    **said("beta|betas", "beta"),
    **said("nightly|nightlies", "nightly"),
    **said("alpha|alphas", "alpha"),
}
RELEASE = said("version|versions", "version") | said("release|build|update|releases|builds|updates", "date")
ONE_RELEASE = said("version", "version") | said("release|build|update", "date")
ORDER = {
    **said(
        "newest|latest|most recent|most recently updated|most recently released|most recently "
        "published|last updated|"
        "last released|recently updated|recently released|freshest|last",
        "newest",
    ),
    **said("oldest|earliest|least recently updated|least recently released|longest untouched", "oldest"),
}
LAST_BY = {
    **said(
        "newest|most recent|most recently updated|updated most recently|updated last|released last|latest|"
        "released most recently|most recently released|last updated|last released|published last|"
        "published most recently|most recently published|has the newest release|got the latest update|"
        "has the most recent release|has the latest release|had the most recent release|came out last|"
        "came out most recently|had the latest release|last to be updated|last to be released|last to be published|"
        "last to get an update|last to get a release|last to see an update|last to receive an update|last touched|"
        "touched last|refreshed last|published something last|got an update last|had an update last|"
        "had a release last|got the last update|saw the latest update|saw the latest release|"
        "saw the most recent update|saw the most recent release|got the most recent update|"
        "received the latest update|received the most recent update|got the newest release",
        "newest",
    ),
    **said(
        "oldest|least recently updated|updated least recently|earliest|longest without an update|not been "
        "updated for the longest time|not been updated for longest|not been updated the longest|not had a "
        "release for the longest time|waited longest for an update|gone the longest without an update|"
        "gone longest without an update|has the oldest newest release|updated the longest ago|updated longest ago|"
        "updated the longest time ago|released the longest ago|last updated the longest ago|touched the longest ago|"
        "longest untouched|untouched the longest|untouched for the longest time|been untouched for longest|"
        "been untouched for the longest time|seen no update for the longest time|had no update for the longest time|"
        "been waiting longest for an update|been without an update for longest|"
        "been without an update for the longest time|gone the longest time without an update",
        "oldest",
    ),
}
VERSION_ORDER = {
    **said(
        "latest|newest|most recent|last|current|most current|most up to date|up to date|most recently released|"
        "most recently published|present",
        "newest",
    ),
    **said("oldest|first|earliest|initial|original|very first", "oldest"),
}
NUMBERS = {
    **{str(number): number for number in range(1, 201)},
    **{
        word: number
        for number, word in enumerate(
            [
                "one",
                "two",
                "three",
                "four",
                "five",
                "six",
                "seven",
                "eight",
                "nine",
                "ten",
                "eleven",
                "twelve",
                "thirteen",
                "fourteen",
                "fifteen",
                "sixteen",
                "seventeen",
                "eighteen",
                "nineteen",
                "twenty",
            ],
            1,
        )
    },
    **said("dozen|a dozen", 12),
}
RUNS = said(
    "run|runs|running|work|works|working|play|plays|played|playable|available|availability|"
    "usable|used|use|compatible|"
    "launch|launches|exist|exists|offered|come|comes|ship|ships|shipped|shipping|out|released|published|install|"
    "installs|installed|installable|supported|obtainable|run natively|runs natively|native|"
    "provided|get|found|ported|"
    "distributed|made|built|start|starts|live|lives|run fine|work well|operate|operates|executable|"
    "run well|get used|be used|be played|be run|be installed|put|be put|get going|be got running"
) | said("play|plays|played|playable|be played|be playable|to play|get played|play well", "play")
MADE = said(
    "made|published|developed|released|created|written|produced|built|distributed|sold|offered|provided|issued|"
    "designed|coming|come|comes|put out|shipped|programmed|authored"
)
MAKES = said(
    "make|makes|made|publish|publishes|published|develop|develops|developed|has|have|had|offer|offers|offered|"
    "release|releases|released|create|creates|created|produce|produces|produced|sell|sells|sold|provide|provides|"
    "provided|ship|ships|shipped|write|writes|wrote|build|builds|built|distribute|distributes|distributed|"
    "put out|puts out|got|own|owns|bring out|brought out|maintain|maintains|publishing|making|issue|issued|issues"
)
OUT = said(
    "released|published|come out|came out|out|shipped|ship|available|issued|appear|appeared|launched|launch|made|"
    "made available|put out|get released|get published|become available|became available|be released|go out|"
    "went out|pushed out|been released|been published|published on|released on|drop|dropped|land|landed|"
    "see the light of day|saw the light of day|seen the light of day"
)
UPDATED = said(
    "updated|released|published|shipped|came out|come out|out|got a release|got an update|"
    "had a release|had an update|"
    "have a release|have an update|received an update|received a release|saw a release|saw "
    "an update|gotten an update|"
    "with a release|with an update|a release|an update|any release|any update|any releases|any updates|"
    "a new release|a new version|got a new version|received a new version|got a new release|releases|updates|"
    "have new releases|got updates|had releases|with releases|with updates|got updated|got released|"
    "gotten a release|received updates|a version|new versions|new releases|seen a release|seen an update|"
    "seen any release|seen any update|have releases|have updates|appeared|shipped a release|shipped an update|"
    "shipped anything|a new build|new builds|a fresh release|release anything|publish anything|publish a release|"
    "refreshed|touched|renewed|revised|given an update|given a release|brought up to date|get a release|get an "
    "update|get updates|receive an update|receive a release|have new versions|had new releases"
)
DEBUTED = said(
    "debuting|premiering|debut|launching|that debut|first appearing|first coming out|first published|started|"
    "first released|first published|first came out|launched|debuted|first appeared|first shipped|first available|"
    "premiered|first come out|released for the first time|published for the first time|made "
    "their debut|made its debut|"
    "first launched|have their first release|had their first release|had its first release|initially released|"
    "originally released|came out for the first time|saw their first release|first out|have a first release|"
    "appeared for the first time|appear for the first time|shown for the first time|out for the first time|"
    "showed up for the first time|saw the light of day|see the light of day|made their first appearance|"
    "got their first release|newly released|newly published|first seen"
)
LAST_UPDATED = said(
    "last updated|last released|most recently updated|last published|most recently released|last had a release|"
    "last got a release|last got an update|latest released|last came out"
)
ASPECTS = {
    **said("description|summary|purpose|idea|point", "description"),
    **said(
        "publisher|developer|maker|author|creator|vendor|organisation|organization|company|"
        "studio|manufacturer|makers|"
        "developers|publishers|team|owner",
        "publisher",
    ),
    **said(
        "platform|platforms|operating system|operating systems|os|oses|systems|system|supported platforms|devices|"
        "supported operating systems|device|supported systems|platform support",
        "platforms",
    ),
    **said("tag|tags|label|labels|category|categories|genre|genres|keywords|topics", "tags"),
    **said("channel|channels|release channel|release channels", "channels"),
    **said(
        "license|licence|licenses|licences|licensing|software license|software licence|licensing terms|license terms|"
        "licence terms|terms|license conditions|licence conditions",
        "license",
    ),
    **said("kind|type|sort|product kind|product type|kind of product|type of product", "kind"),
    **said("homepage|home page|website|web site|site|url|web address|web page|webpage|website address", "homepage"),
}
PUBLISHERS = said(
    "publisher|publishers|organisation|organisations|organization|organizations|company|companies|studio|studios|"
    "developer|developers|maker|makers|vendor|vendors|orgs|org|teams|team"
)
OPEN_SOURCE = said(
    "open source|opensource|open sourced|foss|floss|whose source is open|whose source code is open|"
    "with open source code|with open sources|whose sources are open",
    Every((Not(Licensed("Proprietary")), Not(Licensed(None)))),
) | said("closed source|closed sourced", Licensed("Proprietary"))
HERE = said(
    "what you have|what do you have|what have you got|what have you|which are there|what is there|what are "
    "there|which ones "
    "are there|which ones do you have|which ones have you got|there is ever been|there have ever been|there "
    "has ever been|there is been|there has been|there have been|there was|"
    "there were|there are by now|you have got|you have here|in the collection|in your collection|on the shelf|in the "
    "database|in stock now|by now|in the catalog|in the catalogue|in the store|in your catalog|in your store|"
    "in this catalog|in this store|here|"
    "on the store|on your store|in your catalogue|from the store|in the shop|on this store|"
    "in total|altogether|overall|"
    "in all|do you have|do you offer|do you list|do you sell|do you know|do you carry|are there|is there|there are|"
    "there is|exist|exists|are available|is available|available|are listed|listed|can i get|"
    "can i download|can i find|"
    "you have|you offer|you know|you list|do we have|we have|have you got|at all|for me|are on offer|on offer|"
    "does the catalog have|does the store have|does the catalog list|does the catalog contain|in existence|"
    "does the store offer|does the catalog hold|are in the catalog|are in the store|is in the catalog|"
    "can i choose from|are public|are published|are offered|that exist|right now|at the "
    "moment|at present|as of now|"
    "as of today|so far|to date|these days|does the store list|does the catalogue have|are in the catalogue|"
    "that you have|that you offer|anywhere|on the market|in stock|listed here|available here|are listed here|"
    "still shown|shown|still listed|still available|still published|are shown|is shown|that are shown|"
    "are there now|that there are|are in your catalog|are in this catalog|on record|on file|"
    "known to you|if any|if there are any|if there is one|if possible|as far as you know|are known|out there|"
    "of yours|that you list|in there|that you know of|you know of"
)
LIST_HEADS = said(
    "point me to|could you point me to|can you point me to|i am search|i search|i would like know|i want know|"
    "i would like a list of|"
    "i am in need of|i require|direct me to|could you show us|can you show us|where can i find|where do i find|"
    "where can i get|tell me the names of|the names of|names of|what are the names of|which|what|list|show|"
    "show me|give me|give me a list of|find|find me|display|name|tell me|tell me about|"
    "tell me which|tell me what|list me|list all|list out|what are|which are|what is|which is|what were|what was|"
    "i want|i want to see|i need|i am looking for|looking for|search for|get|get me|show me a list of|a list of|"
    "list of|show a list of|enumerate|i would like to see|i would like|who has|see|let me see|print|"
    "can i see|can i have|could i see|may i see|could i have|i want a list of|what are some of|name all of|"
    "got any|have you got|got|i am after|i am searching for|i am interested in|i want to find|search|"
    "could i get|may i get|could we get|could we have|could we see|can we see|may we see|i want to get|"
    "is it possible to see|is it possible to get|is it possible to list|is it possible to have|is it possible to find|"
    "would it be possible to see|would it be possible to get|would it be possible to list|may i have|"
    "would it be possible to have|is there a list of|do you have a list of|have you got a list of|do you know some|"
    "do you know any|do you know of any|do you know of some|can i get a list of|could i get a list of|"
    "can i have a list of|can i get|could you give me|can you give me|can you recommend|what about|how about|"
    "can you list|could you list|can you show|could you show|can you find|is it possible to get a list of|"
    "would it be possible to get a list of|i am trying to find|a list with|an overview of|overview of|"
    "i want a list of all|put together a list of|any idea which|i wonder which|could you name|can you name|"
    "please list|tell me of|i would be interested in|we need|we want|we are looking for|he needs|she needs|"
    "what other|which other|show us|give us|in which|return|present|provide|provide a list of|look up|fetch"
)
POLITE = said(
    "can you tell me|could you tell me|would you tell me|can you show me|could you show me|i want to know|"
    "i would like to know|do you know|tell me|let me know|i wonder|i am wondering|i need to know|can you list|"
    "could you list|can you say|could you say|question|my question is|i was wondering|we want to know|"
    "can you give me|could you give me|can you find|could you find|can you check|could you check|check|"
    "can anyone tell me|i have a question|say|explain|remind me|quick question|can you name|could you name|"
    "can you tell|could you tell|will you tell me|so|and|for my notes|just to be sure|out of curiosity|"
    "do you happen to know|any idea|any chance you know|can you explain|help me find|i would like know|help me find "
    "out|"
    "find out|tell us|i would love to know|i am curious|would you know|can you see|can you look up|"
    "could you look up|can you remind me|could you remind me"
)
AUXILIARIES = frozenset(
    [
        "do",
        "does",
        "did",
        "can",
        "could",
        "will",
        "would",
        "may",
        "might",
        "must",
        "should",
        "are",
        "is",
        "was",
        "were",
        "be",
        "been",
        "being",
        "has",
        "have",
        "had",
        "am",
        "able",
        "i",
        "you",
        "we",
        "one",
        "they",
        "it",
        "to",
    ]
)
NEGATIONS = frozenset(["not", "never"])

TABLES: tuple[Phrases, ...] = (
    THINGS,
    PLATFORMS,
    CHANNELS,
    RELEASE,
    FREE,
    PAID,
    OPEN_SOURCE,
    ORDER,
    LAST_BY,
    VERSION_ORDER,
    NUMBERS,
    RUNS,
    MADE,
    MAKES,
    OUT,
    UPDATED,
    DEBUTED,
    LAST_UPDATED,
    ASPECTS,
    PUBLISHERS,
    HERE,
    LIST_HEADS,
    POLITE,
)
