package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/conversion"
)

func (*PlanV2) Hub() {}

func (in *PlanV1) ConvertTo(hub conversion.Hub) error {
	out := hub.(*PlanV2)
	out.ObjectMeta, out.Status = in.ObjectMeta, in.Status
	out.Spec.Common, out.Spec.Schedule = in.Spec.Common, in.Spec.CronSpec
	if in.Spec.HostPort != "" {
		host, port, found := strings.Cut(in.Spec.HostPort, ":")
		number, err := strconv.ParseInt(port, 10, 64)
		if !found || err != nil {
			return fmt.Errorf("spec.hostPort is %q", in.Spec.HostPort)
		}
		out.Spec.Host, out.Spec.Port = host, number
	}
	if in.Spec.Image != "" {
		out.Spec.Images = []string{in.Spec.Image}
	}
	out.Spec.Policy = strings.ToLower(in.Spec.Policy)
	if in.Spec.Replicas != "" {
		number, err := strconv.ParseInt(in.Spec.Replicas, 10, 64)
		if err != nil {
			return fmt.Errorf("spec.replicas: %w", err)
		}
		out.Spec.Replicas = number
	}
	out.Spec.TimeoutMillis = in.Spec.TimeoutSeconds * 1000
	if in.Spec.EnvList != nil {
		out.Spec.Env = make(map[string]string, len(in.Spec.EnvList))
		for _, each := range in.Spec.EnvList {
			out.Spec.Env[each.Name] = each.Value
		}
	}
	for _, each := range in.Spec.Containers {
		out.Spec.Containers = append(out.Spec.Containers, Container{each.Name, each.Cmd, each.Args, each.Limits})
	}
	return nil
}

func (out *PlanV1) ConvertFrom(hub conversion.Hub) error {
	in := hub.(*PlanV2)
	out.ObjectMeta, out.Status = in.ObjectMeta, in.Status
	out.Spec.Common, out.Spec.CronSpec = in.Spec.Common, in.Spec.Schedule
	if in.Spec.Host != "" {
		out.Spec.HostPort = in.Spec.Host + ":" + strconv.FormatInt(in.Spec.Port, 10)
	}
	if len(in.Spec.Images) > 0 {
		out.Spec.Image = in.Spec.Images[0]
	}
	if policy := in.Spec.Policy; policy != "" {
		out.Spec.Policy = strings.ToUpper(policy[:1]) + policy[1:]
	}
	if in.Spec.Replicas != 0 {
		out.Spec.Replicas = strconv.FormatInt(in.Spec.Replicas, 10)
	}
	out.Spec.TimeoutSeconds = in.Spec.TimeoutMillis / 1000
	for name, value := range in.Spec.Env {
		out.Spec.EnvList = append(out.Spec.EnvList, NameValue{name, value})
	}
	slices.SortFunc(out.Spec.EnvList, func(a, b NameValue) int { return cmp.Compare(a.Name, b.Name) })
	for _, each := range in.Spec.Containers {
		out.Spec.Containers = append(out.Spec.Containers, ContainerV1{each.Name, each.Command, each.Args, each.Limits})
	}
	return nil
}

func (in *PlanV3) ConvertTo(hub conversion.Hub) error {
	out := hub.(*PlanV2)
	out.ObjectMeta, out.Status = in.ObjectMeta, in.Status
	spec := in.Spec
	out.Spec = SpecV2{
		Common: spec.Common, Schedule: spec.When.Cron, Host: spec.Host, Port: spec.Port,
		Images: spec.Template.Images, Policy: spec.Policy, Replicas: spec.Replicas,
		TimeoutMillis: spec.TimeoutMillis, Env: spec.Env, Containers: spec.Containers,
	}
	return nil
}

func (out *PlanV3) ConvertFrom(hub conversion.Hub) error {
	in := hub.(*PlanV2)
	out.ObjectMeta, out.Status = in.ObjectMeta, in.Status
	spec := in.Spec
	out.Spec = SpecV3{
		Common: spec.Common, When: When{spec.Schedule}, Host: spec.Host, Port: spec.Port,
		Template: Template{spec.Images}, Policy: spec.Policy, Replicas: spec.Replicas,
		TimeoutMillis: spec.TimeoutMillis, Env: spec.Env, Containers: spec.Containers,
	}
	return nil
}
