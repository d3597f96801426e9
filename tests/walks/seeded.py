"""The manifests that the proposal for versions of definitions prints, with what it leaves out.

What it prints stands here as it is printed; where it has dots, what this platform has is put in.
"""

from __future__ import annotations

from typing import Any

from polyver import apis
from polyver.definitions.kinds import COMPONENTS
from polyver.kube.objects import load_manifests

Object = dict[str, Any]

_DEFINITION = r"""
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  annotations:
    cert-manager.io/inject-ca-from: vela-system/kubevela-vela-core-root-cert
    controller-gen.kubebuilder.io/version: v0.11.4
  name: componentdefinitions.core.oam.dev
spec:
  conversion:
    strategy: Webhook
    webhook:
      clientConfig:
        service:
          name: vela-core-webhook
          namespace: vela-system
          path: /convert
          port: 443
      conversionReviewVersions:
      - v1beta1
      - v2beta1
  group: core.oam.dev
  names: ...
  scope: Namespaced
  versions:
  - additionalPrinterColumns:
    - jsonPath: .spec.workload.definition.kind
    - jsonPath: .metadata.annotations.definition\.oam\.dev/ description
    name: v1beta1
    schema: ...
    served: true
    storage: true
    subresources:
      status: {}
  - additionalPrinterColumns:
    - jsonPath: .spec.workload.definition.kind
    - jsonPath: .metadata.annotations.definition\.oam\.dev/description
    name: v2beta1
    schema: ...
    served: true
    storage: false
    subresources:
      status: {}
"""

_OBJECTS = """
apiVersion: core.oam.dev/v2beta1
kind: ComponentDefinition
metadata:
  annotations: {}
  name: my-component
  namespace: vela-system
spec:
  versions:
  - version: "2"
    schematic: ...
    workload: ...
  - version: "3.4"
    schematic: ...
    workload: ...
---
apiVersion: core.oam.dev/v1beta1
kind: Application
metadata:
    name: app-with-comp-versioning
spec:
    components:
        - name: backend
          type: my-component@v3.4
"""


def printed_definition() -> Object:
    """The CustomResourceDefinition of components."""
    crd: Object
    [crd] = _values(_DEFINITION)
    ours = apis.crd_of(COMPONENTS.definition())["spec"]
    crd["spec"]["names"] = ours["names"]
    schemas = {each["name"]: each["schema"] for each in ours["versions"]}
    for version in crd["spec"]["versions"]:
        version["schema"] = schemas[version["name"]]
        for name, column in zip(
            ("WORKLOAD-KIND", "DESCRIPTION"), version["additionalPrinterColumns"], strict=True
        ):
            column |= {"name": name, "type": "string"}
    return crd


def printed_objects() -> list[Object]:
    """The component with two versions, and the application that uses one of them."""
    component, application = _values(_OBJECTS)
    for version in component["spec"]["versions"]:
        version["workload"] = {"definition": {"apiVersion": "apps/v1", "kind": "Deployment"}}
        version["schematic"] = {"cue": {"template": "output: {}"}}
    return [component, application]


def _values(text: str) -> list[Any]:
    return [document.value for document in load_manifests(text, "seed.yaml")]
