"""Formats of uploaded media: images are decoded and re-encoded; videos are recognised by their first bytes."""

import asyncio
import io
import struct
import zlib
from typing import NamedTuple

from PIL import Image, ImageCms, ImageMath, ImageOps, ImageStat, features

from countersign.kernel.errors import Refused
from countersign.store.releases.processing.video_duration import VideoType

HEAD_BYTES = 4096
_MP4_BRANDS = frozenset(
    b"isom iso2 iso3 iso4 iso5 iso6 iso7 iso8 iso9 mp41 mp42 mp71 avc1 av01 dash msdh M4V  M4VH M4VP hvc1".split(b" ")
) | {b"M4V "}
_EBML = b"\x1a\x45\xdf\xa3"
_DOCTYPE_WEBM = b"\x42\x82\x84webm"


class UnsupportedVideo(Refused):
    """The bytes are not a video format that browsers play."""

    status = 422
    code = "unsupported_video"
    title = "Unsupported video"
    resolution = "Send an MP4 or a WebM file."


def media_type(head: bytes) -> VideoType:
    """The media type of a video, from its first 4096 bytes.

    Raises:
        UnsupportedVideo: the video is neither MP4 (ISO/IEC 14496-12 §4.3, ftyp) nor WebM (RFC 8794 §11.2, DocType
            webm).
    """
    if head[4:8] == b"ftyp" and head[8:12] in _MP4_BRANDS:
        return "video/mp4"
    if head.startswith(_EBML) and _DOCTYPE_WEBM in head[:128]:
        return "video/webm"
    raise UnsupportedVideo("the bytes are neither MP4 nor WebM")


MAX_PIXELS_A_SIDE = 8192
# Decoding and encoding AVIF takes about 36 bytes of memory for each pixel: with this limit, an image takes less than
# 700 MB.
MAX_PIXELS = 18_000_000
FORMATS = ("PNG", "JPEG", "WEBP", "AVIF")
MEDIA_TYPES = {"PNG": "image/png", "JPEG": "image/jpeg", "WEBP": "image/webp", "AVIF": "image/avif"}
_LOSSY_QUALITY = 88
# Pillow raises these exceptions for invalid or damaged images. Other exceptions are bugs and are logged.
_BROKEN = (
    OSError,
    SyntaxError,
    ValueError,
    TypeError,
    EOFError,
    IndexError,
    KeyError,
    OverflowError,
    MemoryError,
    AttributeError,
    RuntimeError,
    struct.error,
    zlib.error,
    Image.DecompressionBombError,
    Image.DecompressionBombWarning,
)

# Look the function up by name, because Pillow's type stub does not declare the type of its result.
_SRGB = ImageCms.ImageCmsProfile(vars(ImageCms)["createProfile"]("sRGB"))

_turn = asyncio.Semaphore(1)
"""A process re-encodes only one image at a time, because the largest allowed image takes about 512 MiB."""


class UnsupportedImage(Refused):
    """The bytes are not an image in a supported format, or the image is damaged or too large."""

    status = 422
    code = "unsupported_image"
    title = "Unsupported image"
    resolution = (
        "Send a PNG, JPEG, WebP or AVIF image of at most 18 megapixels and 8192 pixels a side; others can be "
        "converted to PNG."
    )


class Picture(NamedTuple):
    """An encoded image; width and height in pixels."""

    data: bytes
    media_type: str
    width: int
    height: int


COVER_WIDTHS = (320, 640, 1280)
_COVER_QUALITY: dict[str, dict[str, int]] = {"AVIF": {"quality": 60, "speed": 8}, "WEBP": {"quality": 82}}


class CoverPictures(NamedTuple):
    """An encoded image. If the image is a cover, `sizes` contains smaller copies in AVIF and WebP, and `color` is the
    mean colour as #rrggbb."""

    picture: Picture
    sizes: list[Picture]
    color: str | None


async def reencode(data: bytes) -> Picture:
    """Return the image in the same format, upright, in sRGB, without metadata, and with only the first frame.

    Raises:
        UnsupportedImage: the image is not PNG, JPEG, WebP or AVIF, is damaged, has more than 18 megapixels, or has more
            than 8192 pixels on a side.
    """
    async with _turn:
        return await asyncio.to_thread(_reencode, data)


async def reencode_cover(data: bytes) -> CoverPictures:
    """Return the image as `reencode` does, with copies in AVIF and WebP. The copies have the widths of `COVER_WIDTHS`
    that do not exceed the image's own width.

    Raises:
        UnsupportedImage: as raised by `reencode`.
    """
    async with _turn:
        return await asyncio.to_thread(_reencode_cover, data)


def _reencode_cover(data: bytes) -> CoverPictures:
    picture = _reencode(data)
    with Image.open(io.BytesIO(picture.data)) as image:
        rgb_image = image.convert("RGB")
    sizes = [
        _resized(rgb_image, name, width)
        for name in _COVER_QUALITY
        if _is_readable(name)
        for width in COVER_WIDTHS
        if width <= rgb_image.width
    ]
    mean = bytes(round(level) for level in ImageStat.Stat(rgb_image).mean)
    return CoverPictures(picture, sizes, f"#{mean.hex()}")


def _resized(image: Image.Image, name: str, width: int) -> Picture:
    height = max(1, round(image.height * width / image.width))
    output = io.BytesIO()
    ImageOps.fit(image, (width, height), Image.Resampling.LANCZOS).save(output, name, **_COVER_QUALITY[name])
    return Picture(output.getvalue(), MEDIA_TYPES[name], width, height)


def _reencode(data: bytes) -> Picture:
    try:
        with Image.open(io.BytesIO(data), formats=[name for name in FORMATS if _is_readable(name)]) as image:
            name = image.format or ""
            sides = image.size
            if max(sides) > MAX_PIXELS_A_SIDE or min(sides) < 1 or sides[0] * sides[1] > MAX_PIXELS:
                raise UnsupportedImage(f"the image has {image.width} × {image.height} pixels")
            image.load()
            plain_image = _without_metadata(image, name)
    except _BROKEN as error:
        raise UnsupportedImage("the bytes are not a supported image, or the image is damaged") from error
    output = io.BytesIO()
    if name == "PNG":
        plain_image.save(output, "PNG", optimize=False)
    else:
        plain_image.save(output, name, quality=_LOSSY_QUALITY)
    return Picture(output.getvalue(), MEDIA_TYPES[name], plain_image.width, plain_image.height)


def _is_readable(name: str) -> bool:
    return name not in ("WEBP", "AVIF") or bool(features.check(name.lower()))


def _without_metadata(image: Image.Image, name: str) -> Image.Image:
    """Return the image without metadata, rotated according to EXIF, in RGB or RGBA, and converted to sRGB."""
    upright = ImageOps.exif_transpose(image)
    if upright.mode.startswith("I"):
        # Scale 16-bit grey values, because `convert` would clip all values above 255.
        scaled: Image.Image = ImageMath.lambda_eval(lambda bands: bands["grey"] / 256, grey=upright.convert("I"))
        upright = scaled.convert("L")
    has_alpha = upright.mode in ("RGBA", "LA", "PA", "La", "RGBa") or "transparency" in upright.info
    mode = "RGBA" if has_alpha and name != "JPEG" else "RGB"
    profile = upright.info.get("icc_profile")
    converted_image = upright.convert(mode) if upright.mode != "CMYK" or not profile else upright
    if profile:
        converted_image = _converted_to_srgb(converted_image, profile, mode)
    bare_image = Image.new(mode, converted_image.size)
    bare_image.paste(converted_image)
    return bare_image


def _converted_to_srgb(image: Image.Image, profile: bytes, mode: str) -> Image.Image:
    """Return the image in sRGB. A profile that is unreadable or belongs to another colour mode is ignored."""
    try:
        source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
        srgb_image = ImageCms.profileToProfile(image, source, _SRGB, outputMode=mode)
    except (ImageCms.PyCMSError, OSError, ValueError):
        return image.convert(mode)
    return image.convert(mode) if srgb_image is None else srgb_image
