// Command tekton answers questions with Tekton Pipelines.
package main

import (
	pipeline "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	pipelineold "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1beta1"
	resolutionold "github.com/tektoncd/pipeline/pkg/apis/resolution/v1alpha1"
	resolution "github.com/tektoncd/pipeline/pkg/apis/resolution/v1beta1"

	"polyver.dev/tests/peers/conversions/ask"
)

func main() {
	ask.Main(map[string]ask.Kind{
		"Task": {Hub: "v1", Versions: map[string]any{
			"v1": &pipeline.Task{}, "v1beta1": &pipelineold.Task{},
		}},
		"TaskRun": {Hub: "v1", Versions: map[string]any{
			"v1": &pipeline.TaskRun{}, "v1beta1": &pipelineold.TaskRun{},
		}},
		"PipelineRun": {Hub: "v1", Versions: map[string]any{
			"v1": &pipeline.PipelineRun{}, "v1beta1": &pipelineold.PipelineRun{},
		}},
		"ResolutionRequest": {Hub: "v1beta1", Versions: map[string]any{
			"v1beta1": &resolution.ResolutionRequest{}, "v1alpha1": &resolutionold.ResolutionRequest{},
		}},
	})
}
