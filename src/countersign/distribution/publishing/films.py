"""Films are kept as they come; their first bytes tell whether they are MP4 or WebM."""

from countersign.kernel.errors import Refused

HEAD_BYTES = 4096
_MP4_BRANDS = frozenset(
    b"isom iso2 iso3 iso4 iso5 iso6 iso7 iso8 iso9 mp41 mp42 mp71 avc1 av01 dash msdh M4V  M4VH M4VP hvc1".split(b" ")
) | {b"M4V "}
_EBML = b"\x1a\x45\xdf\xa3"
_DOCTYPE_WEBM = b"\x42\x82\x84webm"


class UnsupportedVideo(Refused):
    """The bytes are no film of a kind that browsers play."""

    status = 422
    code = "unsupported_video"
    title = "Unsupported video"
    resolution = "Send an MP4 or a WebM file."


def media_type(head: bytes) -> str:
    """The media type that the first 4096 bytes of a film tell.

    Raises:
        UnsupportedVideo: neither MP4 (ISO/IEC 14496-12 §4.3, ftyp) nor WebM (RFC 8794 §11.2, DocType webm).
    """
    if head[4:8] == b"ftyp" and head[8:12] in _MP4_BRANDS:
        return "video/mp4"
    if head.startswith(_EBML) and _DOCTYPE_WEBM in head[:128]:
        return "video/webm"
    raise UnsupportedVideo("the bytes are neither MP4 nor WebM")
