"""Where a page may send somebody on to: a path of this service, and nowhere else (attack T40: open redirects)."""

from urllib.parse import quote

ROOT = "/"


def local(return_to: str) -> str:
    """The path when it is one of this service, else the root.

    A second slash or a backslash would name another host; characters that browsers drop or translate could become one.
    """
    is_local = (
        return_to.startswith("/")
        and not return_to.startswith("//")
        and return_to.isascii()
        and return_to.isprintable()
        and not {"\\", " "} & set(return_to)
    )
    return return_to if is_local else ROOT


def through(page: str, return_to: str) -> str:
    """The address of a page of this service that goes on to `return_to` afterwards."""
    onwards = local(return_to)
    return page if onwards == ROOT else f"{page}?return_to={quote(onwards, safe='/')}"
