"""The words of the demonstration catalog: sixty invented products."""

from typing import NamedTuple

from countersign.store.catalog.schemas import Kind


class Title(NamedTuple):
    """An invented product: its name, what it is, and the tags it is found by."""

    name: str
    description: str
    tags: tuple[str, ...]


GAMES = (
    Title("Harbour of Small Lights", "Keep a lighthouse alive through one long winter.", ("cozy", "simulation")),
    Title("Glass Orchard", "Grow fruit that remembers who planted it.", ("cozy", "farming")),
    Title("The Ninth Tide", "A tactical retreat, told one wave at a time.", ("strategy", "turn-based")),
    Title("Copper Meridian", "Race airships along a line nobody else can see.", ("racing", "multiplayer")),
    Title("Saltmarsh Detective", "Everyone in the village lies, and the tide is coming in.", ("mystery", "story")),
    Title("Underroot", "Dig down through a forest that digs back.", ("roguelike", "action")),
    Title("Paper Cavalry", "Fold your army before the rain starts.", ("strategy", "puzzle")),
    Title("Aurora Freight", "Haul impossible cargo across a frozen moon.", ("simulation", "trucks")),
    Title("Lanternfall", "A platformer in which falling is the only way up.", ("platformer", "indie")),
    Title("Quiet Siege", "Win a war without waking the king.", ("strategy", "stealth")),
    Title("Mossback", "Live a hundred years as a very patient turtle.", ("cozy", "exploration")),
    Title("Neon Abbey", "Monks, synthesizers, and one stolen relic.", ("action", "music")),
    Title("Driftwood Kingdom", "Build a court on a raft and keep it afloat.", ("builder", "strategy")),
    Title("Seven Bells", "A naval tale of one ship and very little time.", ("story", "naval")),
    Title("Clockmaker's Debt", "Repair time itself, at hourly rates.", ("puzzle", "story")),
    Title("Static Bloom", "Flowers grow where the radio is loudest.", ("horror", "exploration")),
    Title("Long Way to Vesna", "A road trip with three dogs and no map.", ("story", "driving")),
    Title("Tin Parliament", "Debate, bribe and dance your robots into office.", ("comedy", "strategy")),
    Title("Wolf in the Signal", "Something answers every distress call.", ("horror", "mystery")),
    Title("Brightwater Rally", "Off-road racing through a drowned county.", ("racing", "driving")),
    Title("Ember & Ash", "Two heroes, one flame, shared controls.", ("coop", "action")),
    Title("Cartographer", "The map is wrong; change the land.", ("puzzle", "exploration")),
    Title("Owl Hour", "Run a night market for those who cannot sleep.", ("cozy", "management")),
    Title("Zephyr Nine", "Nine winds, nine bosses, one broken kite.", ("action", "indie")),
)
APPS = (
    Title("Marginalia", "Read and annotate documents together, offline first.", ("reading", "notes")),
    Title("Tidepool", "A calm feed reader that ends.", ("reading", "news")),
    Title("Ledgerline", "Household accounts in plain text.", ("finance", "plaintext")),
    Title("Pocket Almanac", "Sunrise, tides and weather without a network.", ("weather", "outdoors")),
    Title("Chorus", "Rehearse four-part music with your own voice.", ("music", "learning")),
    Title("Stillframe", "Sort ten thousand photographs in an evening.", ("photo", "library")),
    Title("Breadcrumb", "Hiking maps that survive a flat battery.", ("outdoors", "maps")),
    Title("Second Draft", "A writing room with no distractions.", ("writing", "notes")),
    Title("Kettle", "Timers that know what you are cooking.", ("cooking", "home")),
    Title("Greenhouse", "Know when each of your plants is thirsty.", ("home", "garden")),
    Title("Parlance", "Learn a language from letters you really get.", ("learning", "language")),
    Title("Switchboard", "One quiet inbox for every messenger.", ("messaging", "focus")),
    Title("Nightjar", "A sleep diary that keeps its data to itself.", ("health", "privacy")),
    Title("Roundtable", "Decide things in groups without a meeting.", ("teams", "planning")),
    Title("Inkwell", "Handwriting on any screen, searchable.", ("notes", "drawing")),
    Title("Wayfarer", "Plan a journey by rail across a continent.", ("travel", "maps")),
    Title("Sparrow Post", "Letters that take three days to arrive.", ("messaging", "writing")),
    Title("Fathom", "Dive planning and logs for careful people.", ("outdoors", "sport")),
)
TOOLS = (
    Title("Ferrule", "Pack, sign and check release archives.", ("release", "security")),
    Title("Plumbline", "Find why a build is not reproducible.", ("build", "release")),
    Title("Sievebench", "Benchmark command lines without fooling yourself.", ("benchmark", "cli")),
    Title("Loupe", "Inspect any binary format with small grammars.", ("binary", "cli")),
    Title("Treadle", "Run a thousand small jobs on a few machines.", ("jobs", "cli")),
    Title("Whetstone", "Shrink a failing test case to its core.", ("testing", "cli")),
    Title("Gantry", "Move large files between sites, resumably.", ("transfer", "storage")),
    Title("Spindle", "Convert textures and audio for game engines.", ("assets", "build")),
    Title("Quoin", "Type checks for configuration files.", ("lint", "configuration")),
    Title("Sextant", "Trace slow requests through many services.", ("tracing", "operations")),
    Title("Calipers", "Measure frame times on real devices.", ("benchmark", "graphics")),
    Title("Dovetail", "Merge structured files without conflicts.", ("git", "merge")),
    Title("Grindhouse", "Fuzz parsers until they confess.", ("testing", "security")),
    Title("Mortar", "Build levels from tiles, entirely by keyboard.", ("editor", "gamedev")),
    Title("Riddle", "Ask questions of log files in plain words.", ("logs", "cli")),
    Title("Awl", "Punch holes in very large SQL dumps.", ("database", "cli")),
    Title("Bellows", "Load tests that stop by themselves.", ("benchmark", "operations")),
    Title("Trivet", "Keep three kinds of secrets apart.", ("security", "operations")),
)
ALL: tuple[tuple[Kind, Title], ...] = (
    *(("game", title) for title in GAMES),
    *(("app", title) for title in APPS),
    *(("tool", title) for title in TOOLS),
)
