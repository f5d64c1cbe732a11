"""What an updating client gets: the signed manifest and the locations of chunks, and which callers get them."""

import base64
import json

import httpx
import msgspec

from countersign.kernel import clock
from countersign.updates import chunks, dsse, manifest, trust
from countersign.updates.api_types import ChannelState, ChunkPlaces, Envelope
from tests.store.releases.processing.works import EXECUTABLE, JobRunner, noise, tar

FILES = {"run.sh": EXECUTABLE, "data": noise(600_000)}


async def test_a_client_gets_every_byte_from_the_addresses_in_the_answers(works: JobRunner) -> None:
    await works.upload_and_process(tar(FILES), "1.1.0")
    await works.publish("1.1.0")

    state = msgspec.convert(await works.get("/channels/stable"), ChannelState)
    statement, key = trust.verify_channel("north", "stable", state, pinned_key=None, seen_counter=0, now=clock.now())
    signed_manifest = msgspec.convert(await works.get("/releases/1.1.0/manifest"), Envelope)
    payload = dsse.verify(signed_manifest, manifest.PAYLOAD_TYPE, {key.keyid: key})
    assert statement.version == "1.1.0"
    assert statement.builds == {"": manifest.digest(payload)}
    build_manifest = manifest.decode(payload)
    chunk_places = msgspec.convert(await works.get("/releases/1.1.0/chunks"), ChunkPlaces)
    sizes = {chunk.id: chunk.size for chunk in build_manifest.chunks}
    received_chunks: dict[str, bytes] = {}
    for pack in chunk_places.packs:
        for name, start, length in pack.chunks:
            answer = await works.shop.world.http.get(pack.url, headers={"Range": f"bytes={start}-{start + length - 1}"})
            assert answer.status_code == 206
            received_chunks[name] = chunks.decompress(answer.content, sizes[name], name)
    rebuilt_files = {
        file.path: b"".join(received_chunks[build_manifest.chunks[n].id] for n in file.chunks)
        for file in build_manifest.files
    }
    assert rebuilt_files == FILES
    artifact = await works.shop.world.http.get(chunk_places.artifact_url)
    assert artifact.content == tar(FILES)


async def test_the_first_request_of_an_install_is_counted_and_repeated_requests_are_not(works: JobRunner) -> None:
    await works.upload_and_process(tar(FILES), "1.1.0")
    await works.publish("1.1.0")
    owner = await works.shop.world.person("owner@north.example", north="owner")

    await works.get("/releases/1.1.0/chunks")
    for _ in range(2):
        await works.get("/releases/1.1.0/chunks", headers={"Download-Begins": "1"})
    await works.get("/releases/1.1.0/manifest", headers={"Download-Begins": "1"})

    usage = (await works.shop.world.call("GET", "/org/usage", owner)).json()
    assert usage["downloads"] == 2
    assert [(row["version"], row["downloads"]) for row in usage["downloaded"]] == [("1.1.0", 2)]


async def test_only_entitled_callers_get_manifests_chunks_deltas_and_sboms(works: JobRunner) -> None:
    world, shop = works.shop.world, works.shop
    body = {"slug": "sold", "title": "Sold", "kind": "game", "platforms": ["linux"], "access": "entitled"}
    product_id = (await world.call("POST", "/products", shop.token, json=body)).json()["id"]
    sold_works = JobRunner(shop._replace(product_id=product_id), works.folder)
    await sold_works.upload_and_process(tar(FILES), "1.0.0")
    await sold_works.publish("1.0.0")
    buyer = await world.person("buyer@example.org")
    other_token = await world.person("other@example.org")
    await world.grant("buyer@example.org", product_id)

    for subpath in ("manifest", "chunks", "delta?from=1.0.0", "sbom"):
        path = f"/products/{product_id}/releases/1.0.0/{subpath}"
        assert (await world.call("GET", path)).status_code == 401
        assert (await world.call("GET", path, other_token)).json()["code"] == "not_entitled"
        assert (await world.call("GET", path, buyer)).status_code == (404 if subpath == "sbom" else 200)
        assert (await world.call("GET", path, shop.token)).status_code == (404 if subpath == "sbom" else 200)


async def test_drafts_do_not_exist_for_other_callers(works: JobRunner) -> None:
    world = works.shop.world
    await works.upload_and_process(tar(FILES), "2.0.0-draft")
    stranger = await world.person("s@south.example", south="owner")

    for token in (None, stranger):
        path = f"/products/{works.shop.product_id}/releases"
        drafted_response = await world.call("GET", f"{path}/2.0.0-draft/manifest", token)
        missing_response = await world.call("GET", f"{path}/7.0.0/manifest", token)
        assert drafted_response.status_code == missing_response.status_code == 404
        assert without_address(drafted_response) == without_address(missing_response)
    assert (await works.get("/releases/2.0.0-draft/manifest", works.shop.token))["payload"]


def without_address(answer: httpx.Response) -> dict[str, object]:
    return {name: value for name, value in answer.json().items() if name != "instance"}


async def test_builds_are_found_by_their_platform(works: JobRunner) -> None:
    await works.upload_and_process(tar({"for": b"linux"}), "1.1.0", "linux.tar", platform="linux")
    await works.upload_and_process(tar({"for": b"windows"}), "1.1.0", "windows.tar", platform="windows")
    await works.publish("1.1.0")

    for platform in ("linux", "windows"):
        signed_manifest = await works.get(f"/releases/1.1.0/manifest?platform={platform}")
        payload = json.loads(base64.b64decode(signed_manifest["payload"]))
        assert (payload["platform"], payload["files"][0]["size"]) == (platform, len(platform))
    state = await works.get("/channels/stable")
    assert set(json.loads(base64.b64decode(state["statement"]["payload"]))["builds"]) == {"linux", "windows"}
    path = f"/products/{works.shop.product_id}/releases/1.1.0/manifest?platform=macos"
    answer = await works.shop.world.call("GET", path)
    assert (answer.status_code, answer.json()["code"]) == (404, "not_processed")


async def test_a_manifest_is_not_sent_again_to_a_client_that_has_it(works: JobRunner) -> None:
    await works.upload_and_process(tar(FILES), "1.1.0")
    await works.publish("1.1.0")
    path = f"/products/{works.shop.product_id}/releases/1.1.0/manifest"
    first_answer = await works.shop.world.call("GET", path)

    second_answer = await works.shop.world.call("GET", path, headers={"If-None-Match": first_answer.headers["ETag"]})

    assert second_answer.status_code == 304
