"""The logo the metadata names: a tick that signs across a sheet."""

SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64" role="img" aria-label="Countersign">'
    '<rect width="64" height="64" rx="14" fill="#1f3aa8"/>'
    '<path d="M18 12h20l10 10v30a2 2 0 0 1-2 2H18a2 2 0 0 1-2-2V14a2 2 0 0 1 2-2z" fill="#fff"/>'
    '<path d="M38 12v10h10z" fill="#b9c6f5"/>'
    '<path d="M23 36l7 7 13-15" fill="none" stroke="#1f3aa8" stroke-width="5" stroke-linecap="round" '
    'stroke-linejoin="round"/></svg>'
)
# It is an image and nothing else, also for whoever opens it as a page.
HEADERS = (
    ("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; sandbox"),
    ("Cross-Origin-Resource-Policy", "cross-origin"),
    ("Cache-Control", "public, max-age=86400"),
)
