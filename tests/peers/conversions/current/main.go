// Command current answers questions with projects that build with current Kubernetes libraries.
package main

import (
	alertold "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1alpha1"
	alert "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1beta1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubeadmold "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta1"
	kubeadm "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	planeold "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta1"
	plane "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	coreold "sigs.k8s.io/cluster-api/api/core/v1beta1"
	core "sigs.k8s.io/cluster-api/api/core/v1beta2"
	queueold "sigs.k8s.io/kueue/apis/kueue/v1beta1"
	queue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"polyver.dev/tests/peers/conversions/ask"
)

func two(hub string, newest any, spoke string, old any) ask.Kind {
	return ask.Kind{Hub: hub, Versions: map[string]any{hub: newest, spoke: old}}
}

func main() {
	// These conversions look up the version of a referenced kind in the cluster.
	version := func(kind schema.GroupKind) (string, error) { return kind.Group + "/v1beta1", nil }
	coreold.SetAPIVersionGetter(version)
	planeold.SetAPIVersionGetter(version)
	ask.Main(map[string]ask.Kind{
		"Cluster":             two("v1beta2", &core.Cluster{}, "v1beta1", &coreold.Cluster{}),
		"ClusterClass":        two("v1beta2", &core.ClusterClass{}, "v1beta1", &coreold.ClusterClass{}),
		"Machine":             two("v1beta2", &core.Machine{}, "v1beta1", &coreold.Machine{}),
		"MachineDeployment":   two("v1beta2", &core.MachineDeployment{}, "v1beta1", &coreold.MachineDeployment{}),
		"MachineSet":          two("v1beta2", &core.MachineSet{}, "v1beta1", &coreold.MachineSet{}),
		"MachinePool":         two("v1beta2", &core.MachinePool{}, "v1beta1", &coreold.MachinePool{}),
		"MachineHealthCheck":  two("v1beta2", &core.MachineHealthCheck{}, "v1beta1", &coreold.MachineHealthCheck{}),
		"KubeadmConfig":       two("v1beta2", &kubeadm.KubeadmConfig{}, "v1beta1", &kubeadmold.KubeadmConfig{}),
		"KubeadmControlPlane": two("v1beta2", &plane.KubeadmControlPlane{}, "v1beta1", &planeold.KubeadmControlPlane{}),
		"AlertmanagerConfig":  two("v1alpha1", &alertold.AlertmanagerConfig{}, "v1beta1", &alert.AlertmanagerConfig{}),
		"ClusterQueue":        two("v1beta2", &queue.ClusterQueue{}, "v1beta1", &queueold.ClusterQueue{}),
		"Workload":            two("v1beta2", &queue.Workload{}, "v1beta1", &queueold.Workload{}),
	})
}
