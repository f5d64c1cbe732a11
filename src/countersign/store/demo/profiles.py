"""The profile texts and the websites of the demonstration's publishers."""

PROFILES = {
    "northwind-games": (
        "A studio of nine on the North Sea coast. We make games about weather, freight and patience,"
        " and a handful of small apps that we needed ourselves.",
        "https://northwind.example",
    ),
    "toolsmith": (
        "Command-line tools for people who maintain things. Every tool does one job, reads plain text,"
        " and has a manual that fits on two pages.",
        "https://toolsmith.example",
    ),
    "openfield": (
        "A cooperative of five developers. What we publish is free, and its source is open.",
        "https://openfield.example",
    ),
    "lanternworks": (
        "Two people and a lot of night scenes: puzzles, forests and cities after dark.",
        "https://lanternworks.example",
    ),
    "pixel-harbour": (
        "Games with hand-drawn ports, salt marshes and slow trains. Founded by three friends in a boathouse.",
        "https://pixelharbour.example",
    ),
    "harbour-collective": (
        "Apps for small teams: notes, plans and letters that stay on your own machine.",
        "https://harbourcollective.example",
    ),
    "quiet-apps": (
        "Apps without notifications. They wait until you open them.",
        "https://quietapps.example",
    ),
}
"""Text and website by slug."""
