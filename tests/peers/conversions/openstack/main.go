// Command openstack answers questions with the Cluster API provider for OpenStack.
package main

import (
	old "sigs.k8s.io/cluster-api-provider-openstack/api/v1alpha7"
	newest "sigs.k8s.io/cluster-api-provider-openstack/api/v1beta1"

	"polyver.dev/tests/peers/conversions/ask"
)

func main() {
	ask.Main(map[string]ask.Kind{
		"OpenStackMachine": {Hub: "v1beta1", Versions: map[string]any{
			"v1beta1": &newest.OpenStackMachine{}, "v1alpha7": &old.OpenStackMachine{},
		}},
	})
}
