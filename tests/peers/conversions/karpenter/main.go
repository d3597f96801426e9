// Command karpenter answers questions with Karpenter and its provider for AWS.
package main

import (
	"context"

	aws "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	awsold "github.com/aws/karpenter-provider-aws/pkg/apis/v1beta1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	core "sigs.k8s.io/karpenter/pkg/apis/v1"
	coreold "sigs.k8s.io/karpenter/pkg/apis/v1beta1"
	"sigs.k8s.io/karpenter/pkg/operator/injection"

	"polyver.dev/tests/peers/conversions/ask"
)

func main() {
	// The context tells which kind a reference names that names none.
	ask.Context = injection.WithNodeClasses(context.Background(), []schema.GroupVersionKind{
		{Group: "karpenter.k8s.aws", Version: "v1", Kind: "EC2NodeClass"},
	})
	ask.Main(map[string]ask.Kind{
		"NodePool": {Hub: "v1beta1", Versions: map[string]any{
			"v1": &core.NodePool{}, "v1beta1": &coreold.NodePool{},
		}},
		"EC2NodeClass": {Hub: "v1beta1", Versions: map[string]any{
			"v1": &aws.EC2NodeClass{}, "v1beta1": &awsold.EC2NodeClass{},
		}},
	})
}
