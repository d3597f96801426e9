package main

import (
	"fmt"
	"math/rand"
	"reflect"
	"time"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// filler puts values into objects: up to so many items into lists and maps, and something into
// pointers with a chance. Without a source of random values all scalars stay zero.
type filler struct {
	random *rand.Rand
	most   int
	chance float64
	inside []reflect.Type
}

func (f *filler) fill(object runtime.Object) {
	f.value(reflect.ValueOf(object).Elem())
}

func (f *filler) happens() bool {
	return f.chance == 1 || (f.random != nil && f.random.Float64() < f.chance)
}

func (f *filler) number(most int) int {
	if f.random == nil {
		return 0
	}
	return f.random.Intn(most)
}

// often tells whether a type is being filled already, as far as recursion should go.
func (f *filler) often(wanted reflect.Type) bool {
	times := 0
	for _, each := range f.inside {
		if each == wanted {
			times++
		}
	}
	return times >= 2 || len(f.inside) > 14
}

func (f *filler) value(value reflect.Value) {
	if f.special(value) {
		return
	}
	switch value.Kind() {
	case reflect.Struct:
		f.fields(value)
	case reflect.Pointer:
		if f.happens() && !f.often(value.Type().Elem()) {
			value.Set(reflect.New(value.Type().Elem()))
			f.value(value.Elem())
		}
	case reflect.Slice:
		f.items(value)
	case reflect.Map:
		f.entries(value)
	default:
		f.scalar(value)
	}
}

func (f *filler) fields(value reflect.Value) {
	f.inside = append(f.inside, value.Type())
	defer func() { f.inside = f.inside[:len(f.inside)-1] }()
	for i := range value.NumField() {
		if _, isMeta := value.Field(i).Interface().(metav1.TypeMeta); isMeta {
			continue
		}
		f.value(value.Field(i))
	}
}

func (f *filler) count(item reflect.Type) int {
	if f.most == 0 || !f.happens() || f.often(item) {
		return 0
	}
	return 1 + f.number(f.most)
}

func (f *filler) items(value reflect.Value) {
	count := f.count(value.Type().Elem())
	if count == 0 {
		return
	}
	value.Set(reflect.MakeSlice(value.Type(), count, count))
	for i := range count {
		f.value(value.Index(i))
	}
}

func (f *filler) entries(value reflect.Value) {
	count := f.count(value.Type().Elem())
	if count == 0 {
		return
	}
	value.Set(reflect.MakeMap(value.Type()))
	for i := range count {
		key := reflect.New(value.Type().Key()).Elem()
		key.SetString(fmt.Sprintf("k%d", i))
		item := reflect.New(value.Type().Elem()).Elem()
		f.value(item)
		value.SetMapIndex(key, item)
	}
}

var texts = []string{"", "a", "b c", "é", "\"q\"", "<&>", "日本", "x-y.z/0", "\n", "😀"}

func (f *filler) scalar(value reflect.Value) {
	if f.random == nil {
		return
	}
	least := 0
	if f.chance == 1 {
		least = 1 // Zero would not show.
	}
	switch value.Kind() {
	case reflect.String:
		value.SetString(texts[least+f.number(len(texts)-least)])
	case reflect.Bool:
		value.SetBool(least+f.number(2) > 0)
	case reflect.Int32:
		value.SetInt(int64(int32(f.random.Uint32()>>f.number(32)) | int32(least)))
	case reflect.Int64, reflect.Int:
		value.SetInt(int64(f.random.Uint64()>>f.number(64)) | int64(least))
	case reflect.Uint8:
		value.SetUint(uint64(f.number(256)))
	case reflect.Float64:
		value.SetFloat(float64(f.number(2000)-1000)/8 + 0.125)
	}
}

// special fills the types that have their own ways in JSON and protobuf.
func (f *filler) special(value reflect.Value) bool {
	if !value.CanAddr() {
		return false
	}
	at := time.Unix(int64(f.number(4_000_000_000)), int64(f.number(1_000_000_000))).UTC()
	switch place := value.Addr().Interface().(type) {
	case *metav1.Time:
		if f.happens() && f.random != nil {
			*place = metav1.NewTime(at)
		}
	case *metav1.MicroTime:
		if f.happens() && f.random != nil {
			*place = metav1.NewMicroTime(at)
		}
	case *metav1.Duration:
		place.Duration = time.Duration(f.number(1_000_000_000_000))
	case *resource.Quantity:
		*place = resource.MustParse([]string{"0", "1", "100m", "1Gi", "1.5", "1e3", "12E"}[f.number(7)])
	case *intstr.IntOrString:
		*place = []intstr.IntOrString{
			intstr.FromInt32(0), intstr.FromInt32(-3), intstr.FromInt32(8080), intstr.FromString("50%"),
			intstr.FromString(""),
		}[f.number(5)]
	case *runtime.RawExtension:
		place.Raw = f.json(`{"apiVersion":"v1","kind":"Secret","a":[1,2.5,null]}`)
	case *metav1.FieldsV1:
		place.Raw = f.json(`{"f:metadata":{"f:labels":{".":{},"f:a":{}}}}`)
	case *apiextensions.JSON:
		place.Raw = []byte([]string{`null`, `{"a":1}`, `[1,"x"]`, `"text"`, `1.5`, `true`}[f.number(6)])
	case *apiextensions.JSONSchemaPropsOrBool:
		if place.Allows = f.number(2) == 1; place.Allows && f.happens() {
			place.Schema = &apiextensions.JSONSchemaProps{Type: "string"}
		}
	case *apiextensions.JSONSchemaPropsOrArray:
		place.Schema = &apiextensions.JSONSchemaProps{Type: "string"}
		if f.number(2) == 1 {
			place.JSONSchemas = []apiextensions.JSONSchemaProps{{Type: "string"}, {ID: "a"}}
			place.Schema = nil
		}
	case *apiextensions.JSONSchemaPropsOrStringArray:
		place.Property = []string{"a", "b"}
		if f.number(2) == 1 {
			place.Schema, place.Property = &apiextensions.JSONSchemaProps{Type: "string"}, nil
		}
	default:
		return false
	}
	return true
}

func (f *filler) json(text string) []byte {
	if f.number(3) == 0 {
		return []byte("{}")
	}
	return []byte(text)
}
