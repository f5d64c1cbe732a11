"""The resources that the Helm chart renders, and the values that it refuses."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from countersign import __version__
from countersign.cli.passphrase import BACKUP_VARIABLE

CHART = Path(__file__).parents[2] / "deploy/helm/countersign"
SEVERAL = {
    "database.urlSecret": "database",
    "masterKey.secret": "master-key",
    "blobs.url": "s3://files/countersign",
    "counters.url": "redis://counters",
}
BACKUP = {"backup.schedule": "17 2 * * *", "backup.passphraseSecret": "backups"}
HELM = shutil.which("helm")

needs_helm = pytest.mark.skipif(HELM is None, reason="helm is not on this machine")


def template(**values: str) -> subprocess.CompletedProcess[str]:
    settings = [argument for name, value in values.items() for argument in ("--set", f"{name}={value}")]
    line = [HELM or "helm", "template", "shop", str(CHART), "--kube-version", "1.29.0", *settings]
    return subprocess.run(line, capture_output=True, text=True, check=False, timeout=60)


def render_chart(**values: str) -> list[dict[str, Any]]:
    process = template(**values)
    assert process.returncode == 0, process.stderr
    return [document for document in yaml.safe_load_all(process.stdout) if document]


def pods(objects: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        object_["metadata"]["name"]: object_["spec"]["template"]["spec"]
        for object_ in objects
        if object_["kind"] in ("Deployment", "StatefulSet")
    } | {
        object_["metadata"]["name"]: object_["spec"]["jobTemplate"]["spec"]["template"]["spec"]
        for object_ in objects
        if object_["kind"] == "CronJob"
    }


@needs_helm
def test_without_a_database_there_is_one_pod_with_both_services_and_a_volume() -> None:
    objects = render_chart()

    (single,) = [object_ for object_ in objects if object_["kind"] == "StatefulSet"]
    assert single["spec"]["replicas"] == 1
    assert [claim["metadata"]["name"] for claim in single["spec"]["volumeClaimTemplates"]] == ["data"]
    assert set(pods(objects)) == {"shop"}


@needs_helm
def test_with_a_database_there_are_several_of_each_service_and_workers() -> None:
    objects = render_chart(**SEVERAL)

    assert set(pods(objects)) == {"shop-store", "shop-records", "shop-worker"}
    assert {object_["spec"]["replicas"] for object_ in objects if object_["kind"] == "Deployment"} == {1, 2}


@needs_helm
@pytest.mark.parametrize(
    "values", [{}, SEVERAL, BACKUP, {**SEVERAL, **BACKUP}], ids=["one", "several", "one, kept", "several, kept"]
)
def test_pods_have_only_needed_rights_and_each_service_selects_its_pods(values: dict[str, str]) -> None:
    objects = render_chart(**values)

    for name, pod in pods(objects).items():
        (container,) = pod["containers"]
        assert pod["securityContext"]["runAsNonRoot"] is True, name
        assert pod["securityContext"]["fsGroupChangePolicy"] == "OnRootMismatch", name
        assert pod["automountServiceAccountToken"] is False, name
        assert container["securityContext"]["readOnlyRootFilesystem"] is True, name
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}, name
    labels = [
        resource["spec"]["template"]["metadata"]["labels"]
        for resource in objects
        if "template" in resource.get("spec", {})
    ]
    for service in (object_ for object_ in objects if object_["kind"] == "Service"):
        selected = service["spec"]["selector"].items()
        assert sum(selected <= label.items() for label in labels) == 1, service["metadata"]["name"]


@needs_helm
@pytest.mark.parametrize("left_out", ["masterKey.secret", "blobs.url", "counters.url"])
def test_settings_that_several_pods_need_are_required(left_out: str) -> None:
    refused_chart = template(**{name: value for name, value in SEVERAL.items() if name != left_out})

    assert refused_chart.returncode != 0
    assert left_out.split(".")[0] in refused_chart.stderr


@needs_helm
@pytest.mark.parametrize("value", ["http://store.example.com", "store.example.com", "https://store.example.com/shop"])
def test_an_address_that_sign_in_would_refuse_is_refused(value: str) -> None:
    assert template(**{"store.url": value}).returncode != 0


@needs_helm
def test_an_ingress_with_untrusted_forwarded_addresses_is_refused() -> None:
    refused_chart = template(**{"ingress.enabled": "true"})
    hosts = {
        document["spec"]["rules"][0]["host"]
        for document in render_chart(**{"ingress.enabled": "true", "trustedProxies": "10.0.0.7"})
        if document["kind"] == "Ingress"
    }

    assert "trustedProxies" in refused_chart.stderr
    assert hosts == {"store.example.com", "records.example.com"}


def test_without_a_tag_the_image_is_that_of_this_version_which_the_guide_has_one_push() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    guide = (CHART.parents[2] / "docs/how-to/deploy-with-helm.md").read_text()

    assert chart["appVersion"] == __version__
    assert f"docker push registry.example.com/countersign:{__version__}\n" in guide


@needs_helm
def test_a_name_that_is_no_value_is_refused() -> None:
    assert template(**{"databse.urlSecret": "database"}).returncode != 0


def volumes(pod: dict[str, Any]) -> dict[str, Any]:
    """Return the volumes by their mount paths."""
    (container,) = pod["containers"]
    sources = {volume["name"]: volume for volume in pod["volumes"]}
    return {volumemount["mountPath"]: sources[volumemount["name"]] for volumemount in container["volumeMounts"]}


@needs_helm
def test_of_one_pod_the_backup_reads_its_volume_on_its_node() -> None:
    objects = render_chart(**BACKUP)
    (claim,) = [object_ for object_ in objects if object_["kind"] == "PersistentVolumeClaim"]
    (single,) = [object_ for object_ in objects if object_["kind"] == "StatefulSet"]
    backup = pods(objects)["shop-backup"]

    assert volumes(backup)["/data"]["persistentVolumeClaim"]["claimName"] == "data-shop-0"
    assert volumes(backup)["/backups"]["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
    assert claim["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
    (near,) = backup["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    matched_labels = near["labelSelector"]["matchLabels"].items()
    assert matched_labels <= single["spec"]["template"]["metadata"]["labels"].items()


@needs_helm
def test_of_several_pods_the_backup_has_their_settings_and_the_claim_that_is_named() -> None:
    objects = render_chart(**SEVERAL, **BACKUP, **{"backup.claim": "elsewhere"})
    backup, store = pods(objects)["shop-backup"], pods(objects)["shop-store"]

    assert [object_ for object_ in objects if object_["kind"] == "PersistentVolumeClaim"] == []
    assert volumes(backup)["/backups"]["persistentVolumeClaim"]["claimName"] == "elsewhere"
    assert volumes(backup)["/data"]["emptyDir"] == {}
    names = {variable["name"] for variable in backup["containers"][0]["env"]}
    other_names = {variable["name"] for variable in store["containers"][0]["env"] if "OPERATOR" not in variable["name"]}
    assert other_names - names == {"COUNTERSIGN_JOB_WORKERS"}
    assert names - other_names == {BACKUP_VARIABLE}


@needs_helm
def test_a_backup_without_a_passphrase_is_refused() -> None:
    assert "backup.passphraseSecret" in template(**{"backup.schedule": "17 2 * * *"}).stderr
