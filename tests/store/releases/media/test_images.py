"""Pictures from strangers: which are accepted, what is stored of them, and which are refused."""

import io
import struct
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageCms, PngImagePlugin

from countersign.store.releases.media_formats import UnsupportedImage, reencode


def encode_picture(name: str, size: tuple[int, int] = (60, 40), mode: str = "RGB", **options: object) -> bytes:
    """Return a picture of two colours in a format."""
    image = Image.new(mode, size, "red" if mode in ("RGB", "RGBA") else 1)
    image.paste(Image.new(mode, (size[0] // 2, size[1]), "blue" if mode in ("RGB", "RGBA") else 0), (0, 0))
    image_bytes = io.BytesIO()
    image.save(image_bytes, name, **options)
    return image_bytes.getvalue()


def open_picture(data: bytes) -> Image.Image:
    """Return the picture in the bytes."""
    return Image.open(io.BytesIO(data))


@pytest.mark.parametrize(
    ("name", "media_type"),
    [("PNG", "image/png"), ("JPEG", "image/jpeg"), ("WEBP", "image/webp"), ("AVIF", "image/avif")],
)
async def test_a_reencoded_picture_keeps_its_format_size_and_colours(name: str, media_type: str) -> None:
    picture = await reencode(encode_picture(name))

    assert (picture.media_type, picture.width, picture.height) == (media_type, 60, 40)
    stored_picture = open_picture(picture.data)
    assert (stored_picture.format, stored_picture.size) == (name, (60, 40))
    red, _, blue = stored_picture.convert("RGB").getpixel((5, 5))
    assert blue > 200 > 60 > red


@pytest.mark.parametrize("mode", ["1", "L", "P", "I;16", "LA", "RGBA"])
async def test_every_kind_of_pixel_becomes_plain_colour(mode: str) -> None:
    png_bytes = io.BytesIO()
    Image.new(mode, (8, 8)).save(png_bytes, "PNG")

    assert open_picture((await reencode(png_bytes.getvalue())).data).mode in ("RGB", "RGBA")


async def test_sixteen_bits_of_grey_keep_their_shade() -> None:
    png_bytes = io.BytesIO()
    Image.new("I;16", (8, 8), 40_000).save(png_bytes, "PNG")

    assert open_picture((await reencode(png_bytes.getvalue())).data).getpixel((0, 0)) == (156, 156, 156)


async def test_transparency_is_kept() -> None:
    picture = await reencode(encode_picture("PNG", mode="RGBA"))

    assert open_picture(picture.data).mode == "RGBA"


async def test_locations_comments_and_profiles_are_removed_from_pictures() -> None:
    png_info = PngImagePlugin.PngInfo()
    png_info.add_text("Comment", "SECRET WORDS")
    exif = Image.Exif()
    exif[0x010E] = "SECRET PLACE"
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()

    for data in (
        encode_picture("PNG", pnginfo=png_info, exif=exif, icc_profile=profile),
        encode_picture("JPEG", exif=exif, icc_profile=profile, comment=b"SECRET WORDS"),
        encode_picture("WEBP", exif=exif, icc_profile=profile, xmp=b"SECRET WORDS"),
        encode_picture("PNG") + b"SECRET TRAILER",
    ):
        picture = await reencode(data)
        assert b"SECRET" not in picture.data
        assert not set(open_picture(picture.data).info) & {"exif", "icc_profile", "comment", "xmp", "Comment"}


async def test_a_picture_is_rotated_by_its_exif_orientation() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6

    picture = await reencode(encode_picture("JPEG", exif=exif))

    assert (picture.width, picture.height) == (40, 60)


async def test_a_profile_that_cannot_be_read_is_left_out_of_account() -> None:
    picture = await reencode(encode_picture("JPEG", icc_profile=b"nonsense"))

    assert picture.width == 60


async def test_of_a_moving_picture_the_first_frame_is_kept() -> None:
    png_bytes = io.BytesIO()
    frames = [Image.new("RGB", (8, 8), colour) for colour in ("red", "blue")]
    frames[0].save(png_bytes, "PNG", save_all=True, append_images=frames[1:])

    stored_picture = open_picture((await reencode(png_bytes.getvalue())).data)

    assert getattr(stored_picture, "n_frames", 1) == 1
    assert stored_picture.convert("RGB").getpixel((0, 0)) == (255, 0, 0)


def bomb(width: int, height: int) -> bytes:
    """Return a small PNG that claims to be large."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(bytes(1000))) + chunk(b"IEND", b"")
    )


SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
HOSTILE = {
    "nothing": b"\0",
    "html": b"<html><script>alert(1)</script>",
    "svg": SVG,
    "gif": encode_picture("GIF", mode="P"),
    "bmp": encode_picture("BMP"),
    "tiff": encode_picture("TIFF"),
    "ico": encode_picture("ICO"),
    "pdf": encode_picture("PDF"),
    "eps": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 1 1\n",
    "cut png": encode_picture("PNG")[:60],
    "cut jpeg": encode_picture("JPEG")[:300],
    "cut webp": encode_picture("WEBP")[:40],
    "cut avif": encode_picture("AVIF")[:100],
    "bomb of 8193": bomb(8193, 1),
    "bomb of 100 megapixels": bomb(10_000, 10_000),
    "bomb of 400 megapixels": bomb(20_000, 20_000),
    "bomb of 2^62": bomb((1 << 31) - 1, (1 << 31) - 1),
    "too few pixels": bomb(8192, 8192),
    "no pixels": bomb(0, 0),
    "png head": b"\x89PNG\r\n\x1a\n",
}


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE.keys())
async def test_a_file_that_is_not_a_picture_is_refused(data: bytes) -> None:
    with pytest.raises(UnsupportedImage):
        await reencode(data)


SAMPLES = [
    encode_picture("PNG"),
    encode_picture("PNG", mode="P"),
    encode_picture("JPEG"),
    encode_picture("WEBP"),
    encode_picture("AVIF", (16, 16)),
]


@settings(max_examples=300, deadline=None)
@given(st.data())
async def test_a_damaged_picture_is_shown_or_turned_away_and_never_a_fault(data: st.DataObject) -> None:
    sample = bytearray(data.draw(st.sampled_from(SAMPLES)))
    for _ in range(data.draw(st.integers(1, 8))):
        position = data.draw(st.integers(0, len(sample) - 1))
        sample[position] = data.draw(st.integers(0, 255))
    cut_length = data.draw(st.integers(1, len(sample)))

    try:
        picture = await reencode(bytes(sample[:cut_length]))
    except UnsupportedImage:
        return

    assert open_picture(picture.data).size == (picture.width, picture.height)
