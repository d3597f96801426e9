// Command knative answers questions with Knative Eventing and Serving.
package main

import (
	flowsnew "knative.dev/eventing/pkg/apis/flows/v1"
	flows "knative.dev/eventing/pkg/apis/flows/v1beta1"
	messagingnew "knative.dev/eventing/pkg/apis/messaging/v1"
	messaging "knative.dev/eventing/pkg/apis/messaging/v1beta1"
	sourcesnew "knative.dev/eventing/pkg/apis/sources/v1"
	sourcesalpha1 "knative.dev/eventing/pkg/apis/sources/v1alpha1"
	sourcesalpha2 "knative.dev/eventing/pkg/apis/sources/v1alpha2"
	sourcesbeta1 "knative.dev/eventing/pkg/apis/sources/v1beta1"
	sourcesbeta2 "knative.dev/eventing/pkg/apis/sources/v1beta2"

	"polyver.dev/tests/peers/conversions/ask"
)

func main() {
	ask.Main(map[string]ask.Kind{
		"PingSource": {Hub: "v1beta2", Versions: map[string]any{
			"v1beta2": &sourcesbeta2.PingSource{}, "v1beta1": &sourcesbeta1.PingSource{},
			"v1alpha2": &sourcesalpha2.PingSource{},
		}},
		"ApiServerSource": {Hub: "v1", Versions: map[string]any{
			"v1": &sourcesnew.ApiServerSource{}, "v1beta1": &sourcesbeta1.ApiServerSource{},
			"v1alpha2": &sourcesalpha2.ApiServerSource{}, "v1alpha1": &sourcesalpha1.ApiServerSource{},
		}},
		"Channel": {Hub: "v1", Versions: map[string]any{
			"v1": &messagingnew.Channel{}, "v1beta1": &messaging.Channel{},
		}},
		"Parallel": {Hub: "v1", Versions: map[string]any{
			"v1": &flowsnew.Parallel{}, "v1beta1": &flows.Parallel{},
		}},
	})
}
