package main

import (
	"bytes"
	"encoding/json"
	"log"
	"math/rand"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
)

// encoded is one object in both forms.
type encoded struct {
	Protobuf []byte          `json:"protobuf"`
	JSON     json.RawMessage `json:"json"`
}

// refused is what the decoder says of bytes that are no object; nothing if they are one after all.
type refused struct {
	Protobuf []byte `json:"protobuf"`
	Kind     string `json:"kind,omitempty"`
	Error    string `json:"error,omitempty"`
}

// encodings gives an empty object of a kind, one with every field, one with every field that can be
// there and be zero, and some with only a part of the fields.
func encodings(known *runtime.Scheme, kind schema.GroupVersionKind) []*encoded {
	random := rand.New(rand.NewSource(1))
	fillers := []*filler{
		{},
		{random: random, most: 1, chance: 1},
		{most: 1, chance: 1},
		{random: random, most: 2, chance: 0.2},
		{random: random, most: 2, chance: 0.3},
	}
	var all []*encoded
	for _, filler := range fillers {
		object, err := known.New(kind)
		if err != nil {
			log.Fatal(err)
		}
		filler.fill(object)
		object.GetObjectKind().SetGroupVersionKind(kind)
		all = append(all, both(known, object))
	}
	return all
}

// both gives an object as it goes over the wire, and the JSON of what arrives there.
func both(known *runtime.Scheme, object runtime.Object) *encoded {
	serializer := protobuf.NewSerializer(known, known)
	var wire bytes.Buffer
	if err := serializer.Encode(object, &wire); err != nil {
		log.Fatal(err)
	}
	arrived, _, err := serializer.Decode(wire.Bytes(), nil, nil)
	if err != nil {
		log.Fatal(err)
	}
	text, err := json.Marshal(arrived)
	if err != nil {
		log.Fatal(err)
	}
	return &encoded{wire.Bytes(), text}
}

func decoding(known *runtime.Scheme, body []byte) *refused {
	answer := &refused{Protobuf: body}
	_, kind, err := protobuf.NewSerializer(known, known).Decode(body, nil, nil)
	if err != nil {
		answer.Error = err.Error()
	}
	if kind != nil {
		answer.Kind = kind.Kind
	}
	return answer
}
