// Command operator answers questions with the operator of Cluster API.
package main

import (
	old "sigs.k8s.io/cluster-api-operator/api/v1alpha1"
	newest "sigs.k8s.io/cluster-api-operator/api/v1alpha2"

	"polyver.dev/tests/peers/conversions/ask"
)

func main() {
	ask.Main(map[string]ask.Kind{
		"InfrastructureProvider": {Hub: "v1alpha2", Versions: map[string]any{
			"v1alpha2": &newest.InfrastructureProvider{}, "v1alpha1": &old.InfrastructureProvider{},
		}},
	})
}
