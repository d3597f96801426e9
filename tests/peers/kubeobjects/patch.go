package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubejson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

type patching struct {
	metav1.TypeMeta
	Original json.RawMessage `json:"original"`
	Patch    json.RawMessage `json:"patch"`
}

type patched struct {
	patching
	Result json.RawMessage `json:"result,omitempty"`
	Status *metav1.Status  `json:"status,omitempty"`
	Panic  bool            `json:"panic,omitempty"`
}

// answered asks several times: where the answer hangs on the order in which Go happens to walk
// through a map, nobody can rely on it, and there is none.
func (p patching) answered(known *runtime.Scheme) *patched {
	object, err := known.New(p.GroupVersionKind())
	if err != nil {
		log.Fatal(err)
	}
	first := p.once(object)
	for range 24 {
		if !same(first, p.once(object)) {
			return nil
		}
	}
	return first
}

func same(one, other *patched) bool {
	message := func(answer *patched) string {
		if answer.Status == nil {
			return ""
		}
		return answer.Status.Message
	}
	return bytes.Equal(one.Result, other.Result) && message(one) == message(other) &&
		one.Panic == other.Panic
}

func (p patching) once(object runtime.Object) (answer *patched) {
	answer = &patched{patching: p}
	defer func() {
		if recover() != nil {
			answer.Panic = true
		}
	}()
	result, err := strategicpatch.StrategicMergeMapPatch(read(p.Original), read(p.Patch), object)
	if err != nil {
		answer.Status = interpreted(err)
		return answer
	}
	if answer.Result, err = json.Marshal(result); err != nil {
		log.Fatal(err)
	}
	return answer
}

func read(text []byte) strategicpatch.JSONMap {
	value := map[string]any{}
	if err := kubejson.Unmarshal(text, &value); err != nil {
		log.Fatal(fmt.Errorf("%s: %w", text, err))
	}
	return value
}

// interpreted gives the status with which the server answers such an error.
func interpreted(err error) *metav1.Status {
	var status apierrors.APIStatus
	switch err {
	case mergepatch.ErrBadJSONDoc, mergepatch.ErrBadPatchFormatForPrimitiveList,
		mergepatch.ErrBadPatchFormatForRetainKeys, mergepatch.ErrBadPatchFormatForSetElementOrderList:
		err = apierrors.NewBadRequest(err.Error())
	case mergepatch.ErrNoListOfLists, mergepatch.ErrPatchContentNotMatchRetainKeys:
		err = apierrors.NewGenericServerResponse(
			http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", err.Error(), 0, false)
	}
	if errors.As(err, &status) {
		found := status.Status()
		return &found
	}
	return &metav1.Status{Status: "Failure", Code: http.StatusInternalServerError, Message: err.Error()}
}
