"""What an API server is told to ask about: no write more than has to be."""

from __future__ import annotations

from typing import Any

from tests.walks.admitted import GROUP, LAMPS

from polyver import apis
from polyver.apis.admission.conversions import CONVERSIONS_WANTED
from polyver.apis.admission.kinds import wanted_by
from polyver.webhook.configurations import configurations

SERVICE = apis.Webhook("shop", "hooks", 8443, ca_bundle="Q0E=")


def webhooks(*kinds: apis.Kind, at: apis.Webhook = SERVICE) -> dict[str, Any]:
    wanted = [each for kind in kinds for each in wanted_by(kind)]
    found = configurations(wanted, at)
    return {each["name"]: each for manifest in found for each in manifest["webhooks"]}


def kind(*versions: str, strategy: Any = None) -> apis.Kind:
    made = apis.Kind("Toy", group="ex.io", scope="Cluster", strategy=strategy)
    for name in versions:
        stored = name == versions[0]
        made.version(name, storage=stored)(type("Toy", (), {"__annotations__": {"a": str}}))
        if not stored and not strategy:
            made.edge(versions[0], name)(lambda _: None)
    return made


def test_hooks_are_asked_in_their_own_versions_alone() -> None:
    found = webhooks(LAMPS)
    defaults = found[f"defaults.lamps.{GROUP}"]
    assert defaults["matchPolicy"] == "Exact"
    assert defaults["rules"] == [
        {
            "apiGroups": [GROUP],
            "apiVersions": ["v1"],
            "operations": ["CREATE", "UPDATE"],
            "resources": ["lamps"],
            "scope": "Namespaced",
        }
    ]


def test_what_is_converted_is_checked_in_all_served_versions_with_its_status() -> None:
    checks = webhooks(LAMPS)[f"checks.lamps.{GROUP}"]
    assert checks["matchPolicy"] == "Equivalent"
    [rule] = checks["rules"]
    assert rule["apiVersions"] == ["v2", "v1"]
    assert rule["resources"] == ["lamps", "lamps/status"]


def test_a_carry_is_asked_about_only_when_it_is_missing() -> None:
    carry = webhooks(LAMPS)[f"carry.lamps.{GROUP}"]
    assert carry["rules"][0]["operations"] == ["UPDATE"]
    [condition] = carry["matchConditions"]
    name = '"conversion.polyver.dev/carry"'
    old, new = (f'{name} in {each}["metadata"]["annotations"]' for each in ("oldObject", "object"))
    assert old in condition["expression"]
    assert f"{new})" in condition["expression"]


def test_each_door_is_named_where_it_is() -> None:
    found = webhooks(LAMPS)
    services = [each["clientConfig"]["service"] for each in found.values()]
    expected = {"namespace": "shop", "name": "hooks", "port": 8443}
    assert expected | {"path": "/admit/mutate"} in services
    assert expected | {"path": "/admit/validate"} in services
    assert {each["clientConfig"]["caBundle"] for each in found.values()} == {"Q0E="}
    away = webhooks(LAMPS, at=apis.Webhook(url="https://h:8443"))
    urls = {each["clientConfig"]["url"] for each in away.values()}
    assert urls == {"https://h:8443/admit/mutate", "https://h:8443/admit/validate"}


def test_each_can_be_asked_twice_and_has_no_effects() -> None:
    for each in webhooks(LAMPS).values():
        assert each["sideEffects"] == "None"
        assert each["failurePolicy"] == "Fail"
        assert each["timeoutSeconds"] == 10
        assert each["admissionReviewVersions"] == ["v1", "v1beta1"]


def test_a_kind_that_nobody_has_a_say_in_is_not_asked_about() -> None:
    assert webhooks(kind("v1"), kind("v1", "v2", strategy="None")) == {}
    assert configurations([], SERVICE) == []


def test_a_version_that_is_not_served_is_not_asked_about() -> None:
    made = kind("v1", "v2")
    made.version("v3", served=False, storage=False)(
        type("Toy", (), {"__annotations__": {"a": str}})
    )
    made.edge("v1", "v3")(lambda _: None)
    found = webhooks(made)
    assert found.keys() == {"carry.toys.ex.io", "checks.toys.ex.io"}
    for each in found.values():
        assert each["rules"][0]["apiVersions"] == ["v2", "v1"]
        assert each["rules"][0]["scope"] == "Cluster"


def test_conversions_are_checked_as_well() -> None:
    [found] = configurations([CONVERSIONS_WANTED], SERVICE)
    assert found["kind"] == "ValidatingWebhookConfiguration"
    assert found["webhooks"][0]["name"] == "checks.conversions.polyver.dev"


def test_cert_manager_is_told_by_an_annotation() -> None:
    at = apis.Webhook("shop", "hooks", inject_ca_from="shop/cert")
    for each in configurations(wanted_by(LAMPS), at):
        annotations = {"cert-manager.io/inject-ca-from": "shop/cert"}
        assert each["metadata"] == {"name": "polyver", "annotations": annotations}
        assert "caBundle" not in each["webhooks"][0]["clientConfig"]
