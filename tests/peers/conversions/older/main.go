// Command older answers questions with projects that build with Kubernetes 1.30.
package main

import (
	externalold "github.com/external-secrets/external-secrets/apis/externalsecrets/v1alpha1"
	external "github.com/external-secrets/external-secrets/apis/externalsecrets/v1beta1"
	longhornold "github.com/longhorn/longhorn-manager/k8s/pkg/apis/longhorn/v1beta1"
	longhorn "github.com/longhorn/longhorn-manager/k8s/pkg/apis/longhorn/v1beta2"
	rolloutold "github.com/openkruise/rollouts/api/v1alpha1"
	rollout "github.com/openkruise/rollouts/api/v1beta1"

	"polyver.dev/tests/peers/conversions/ask"
)

func two(hub string, newest any, spoke string, old any) ask.Kind {
	return ask.Kind{Hub: hub, Versions: map[string]any{hub: newest, spoke: old}}
}

func main() {
	ask.Main(map[string]ask.Kind{
		"ExternalSecret": two("v1beta1", &external.ExternalSecret{}, "v1alpha1", &externalold.ExternalSecret{}),
		"Volume":         two("v1beta2", &longhorn.Volume{}, "v1beta1", &longhornold.Volume{}),
		"Node":           two("v1beta2", &longhorn.Node{}, "v1beta1", &longhornold.Node{}),
		"BackupTarget":   two("v1beta2", &longhorn.BackupTarget{}, "v1beta1", &longhornold.BackupTarget{}),
		"Rollout":        two("v1beta1", &rollout.Rollout{}, "v1alpha1", &rolloutold.Rollout{}),
		"BatchRelease":   two("v1beta1", &rollout.BatchRelease{}, "v1alpha1", &rolloutold.BatchRelease{}),
	})
}
