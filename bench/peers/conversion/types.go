package main

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Common is what all versions have in common.
type Common struct {
	Suspend          *bool               `json:"suspend,omitempty"`
	Owner            string              `json:"owner,omitempty"`
	Team             string              `json:"team,omitempty"`
	Region           string              `json:"region,omitempty"`
	Tier             string              `json:"tier,omitempty"`
	Description      string              `json:"description,omitempty"`
	Priority         int64               `json:"priority,omitempty"`
	HistoryLimit     int64               `json:"historyLimit,omitempty"`
	BackoffLimit     int64               `json:"backoffLimit,omitempty"`
	StartingDeadline int64               `json:"startingDeadline,omitempty"`
	NodeSelector     map[string]string   `json:"nodeSelector,omitempty"`
	Parameters       map[string]string   `json:"parameters,omitempty"`
	Tolerations      []Toleration        `json:"tolerations,omitempty"`
	Volumes          []Volume            `json:"volumes,omitempty"`
	Windows          []Window            `json:"windows,omitempty"`
	Notify           map[string][]string `json:"notify,omitempty"`
	Delays           []int64             `json:"delays,omitempty"`
}

type Toleration struct {
	Key      string `json:"key,omitempty"`
	Operator string `json:"operator,omitempty"`
	Effect   string `json:"effect,omitempty"`
}

type Volume struct {
	Name    string            `json:"name"`
	Mounts  []Mount           `json:"mounts,omitempty"`
	Options map[string]string `json:"options,omitempty"`
}

type Mount struct {
	Path     string `json:"path"`
	ReadOnly bool   `json:"readOnly,omitempty"`
}

type Window struct {
	From string   `json:"from"`
	To   string   `json:"to"`
	Days []string `json:"days,omitempty"`
}

type Condition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Message string `json:"message,omitempty"`
}

type Status struct {
	Conditions []Condition `json:"conditions,omitempty"`
}

type NameValue struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type ContainerV1 struct {
	Name   string            `json:"name"`
	Cmd    string            `json:"cmd,omitempty"`
	Args   []string          `json:"args,omitempty"`
	Limits map[string]string `json:"limits,omitempty"`
}

type Container struct {
	Name    string            `json:"name"`
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Limits  map[string]string `json:"limits,omitempty"`
}

type SpecV1 struct {
	Common         `json:",inline"`
	CronSpec       string        `json:"cronSpec,omitempty"`
	HostPort       string        `json:"hostPort,omitempty"`
	Image          string        `json:"image,omitempty"`
	Policy         string        `json:"policy,omitempty"`
	Replicas       string        `json:"replicas,omitempty"`
	TimeoutSeconds int64         `json:"timeoutSeconds,omitempty"`
	EnvList        []NameValue   `json:"envList,omitempty"`
	Containers     []ContainerV1 `json:"containers,omitempty"`
}

type SpecV2 struct {
	Common        `json:",inline"`
	Schedule      string            `json:"schedule,omitempty"`
	Host          string            `json:"host,omitempty"`
	Port          int64             `json:"port,omitempty"`
	Images        []string          `json:"images,omitempty"`
	Policy        string            `json:"policy,omitempty"`
	Replicas      int64             `json:"replicas,omitempty"`
	TimeoutMillis int64             `json:"timeoutMillis,omitempty"`
	Env           map[string]string `json:"env,omitempty"`
	Containers    []Container       `json:"containers,omitempty"`
}

type When struct {
	Cron string `json:"cron,omitempty"`
}

type Template struct {
	Images []string `json:"images,omitempty"`
}

type SpecV3 struct {
	Common        `json:",inline"`
	When          When              `json:"when,omitempty"`
	Host          string            `json:"host,omitempty"`
	Port          int64             `json:"port,omitempty"`
	Template      Template          `json:"template,omitempty"`
	Policy        string            `json:"policy,omitempty"`
	Replicas      int64             `json:"replicas,omitempty"`
	TimeoutMillis int64             `json:"timeoutMillis,omitempty"`
	Env           map[string]string `json:"env,omitempty"`
	Containers    []Container       `json:"containers,omitempty"`
}

type PlanV1 struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              SpecV1 `json:"spec,omitempty"`
	Status            Status `json:"status,omitempty"`
}

type PlanV2 struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              SpecV2 `json:"spec,omitempty"`
	Status            Status `json:"status,omitempty"`
}

type PlanV3 struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              SpecV3 `json:"spec,omitempty"`
	Status            Status `json:"status,omitempty"`
}

// The webhook makes its objects by reflection and never copies them; the scheme asks for copies.

func (in Common) copied() Common {
	out := in
	if in.Suspend != nil {
		suspend := *in.Suspend
		out.Suspend = &suspend
	}
	out.NodeSelector, out.Parameters = maps.Clone(in.NodeSelector), maps.Clone(in.Parameters)
	out.Tolerations, out.Delays = slices.Clone(in.Tolerations), slices.Clone(in.Delays)
	out.Volumes = slices.Clone(in.Volumes)
	for i, each := range out.Volumes {
		out.Volumes[i].Mounts, out.Volumes[i].Options = slices.Clone(each.Mounts), maps.Clone(each.Options)
	}
	out.Windows = slices.Clone(in.Windows)
	for i, each := range out.Windows {
		out.Windows[i].Days = slices.Clone(each.Days)
	}
	out.Notify = maps.Clone(in.Notify)
	for key, each := range out.Notify {
		out.Notify[key] = slices.Clone(each)
	}
	return out
}

func containers(in []Container) []Container {
	out := slices.Clone(in)
	for i, each := range out {
		out[i].Args, out[i].Limits = slices.Clone(each.Args), maps.Clone(each.Limits)
	}
	return out
}

func (in *PlanV1) DeepCopyObject() runtime.Object {
	out := *in
	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Spec.Common, out.Spec.EnvList = in.Spec.copied(), slices.Clone(in.Spec.EnvList)
	out.Spec.Containers = slices.Clone(in.Spec.Containers)
	for i, each := range out.Spec.Containers {
		out.Spec.Containers[i].Args = slices.Clone(each.Args)
		out.Spec.Containers[i].Limits = maps.Clone(each.Limits)
	}
	out.Status.Conditions = slices.Clone(in.Status.Conditions)
	return &out
}

func (in *PlanV2) DeepCopyObject() runtime.Object {
	out := *in
	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Spec.Common, out.Spec.Env = in.Spec.copied(), maps.Clone(in.Spec.Env)
	out.Spec.Images, out.Spec.Containers = slices.Clone(in.Spec.Images), containers(in.Spec.Containers)
	out.Status.Conditions = slices.Clone(in.Status.Conditions)
	return &out
}

func (in *PlanV3) DeepCopyObject() runtime.Object {
	out := *in
	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Spec.Common, out.Spec.Env = in.Spec.copied(), maps.Clone(in.Spec.Env)
	out.Spec.Template.Images = slices.Clone(in.Spec.Template.Images)
	out.Spec.Containers = containers(in.Spec.Containers)
	out.Status.Conditions = slices.Clone(in.Status.Conditions)
	return &out
}
