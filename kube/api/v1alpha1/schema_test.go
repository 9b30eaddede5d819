package v1alpha1_test

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/kube/api/v1alpha1"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// schema is what the tests read of a schema.
type schema struct {
	Type          string             `json:"type"`
	Format        string             `json:"format"`
	Properties    map[string]*schema `json:"properties"`
	Items         *schema            `json:"items"`
	Required      []string           `json:"required"`
	IntOrString   bool               `json:"x-kubernetes-int-or-string"`
	EmbedsObjects bool               `json:"x-kubernetes-embedded-resource"`
}

func readSchema(t *testing.T, file string) *schema {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "chart", "crds", file))
	if err != nil {
		t.Fatal(err)
	}
	var crd struct {
		Spec struct {
			Versions []struct {
				Schema struct {
					OpenAPIV3Schema *schema `json:"openAPIV3Schema"`
				} `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(text, &crd); err != nil || len(crd.Spec.Versions) != 1 {
		t.Fatalf("%s: %d versions, %v, want one", file, len(crd.Spec.Versions), err)
	}
	return crd.Spec.Versions[0].Schema.OpenAPIV3Schema
}

// TestSchemaIsThatOfTypes wants each field of the types in the schemas, with the same type,
// and no other: an object that a schema lets pass and the types cannot read would keep the
// operator from seeing any.
func TestSchemaIsThatOfTypes(t *testing.T) {
	for file, v := range map[string]any{"studies.yaml": v1alpha1.Study{}, "loadtests.yaml": v1alpha1.LoadTest{}} {
		s := readSchema(t, file)
		for _, part := range []string{"Spec", "Status"} {
			field, _ := reflect.TypeOf(v).FieldByName(part)
			compare(t, file+": "+strings.ToLower(part), s.Properties[strings.ToLower(part)], field.Type)
		}
	}
}

func compare(t *testing.T, path string, s *schema, typ reflect.Type) {
	t.Helper()
	if s == nil {
		t.Errorf("%s is not in the schema", path)
		return
	}
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	want := map[reflect.Kind]string{reflect.String: "string", reflect.Bool: "boolean", reflect.Int32: "integer", reflect.Int64: "integer", reflect.Slice: "array", reflect.Struct: "object"}[typ.Kind()]
	switch typ {
	case reflect.TypeFor[metav1.Time]():
		if s.Type != "string" || s.Format != "date-time" {
			t.Errorf("%s: got %q in the format %q, want a time", path, s.Type, s.Format)
		}
		return
	case reflect.TypeFor[resource.Quantity]():
		if !s.IntOrString {
			t.Errorf("%s: want x-kubernetes-int-or-string", path)
		}
		return
	case reflect.TypeFor[runtime.RawExtension]():
		if !s.EmbedsObjects {
			t.Errorf("%s: want x-kubernetes-embedded-resource", path)
		}
		return
	}
	if s.Type != want || want == "integer" && s.Format != typ.Kind().String() {
		t.Errorf("%s: the schema has %q in the format %q, the type is %v", path, s.Type, s.Format, typ)
	}
	switch typ.Kind() {
	case reflect.Slice:
		compare(t, path+"[]", s.Items, typ.Elem())
	case reflect.Struct:
		fields := map[string]reflect.Type{}
		collect(typ, fields)
		for name, field := range fields {
			compare(t, path+"."+name, s.Properties[name], field)
		}
		for name := range s.Properties {
			if fields[name] == nil {
				t.Errorf("%s.%s is in the schema alone", path, name)
			}
		}
		for _, name := range s.Required {
			if fields[name] == nil {
				t.Errorf("%s requires %q, which is no field", path, name)
			}
		}
	}
}

// collect finds the fields of a struct by their names in JSON.
func collect(typ reflect.Type, fields map[string]reflect.Type) {
	for i := range typ.NumField() {
		f := typ.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if strings.Contains(options, "inline") {
			collect(f.Type, fields)
			continue
		}
		fields[name] = f.Type
	}
}

// TestSharedSchema wants what both kinds share to be the same in both files.
func TestSharedSchema(t *testing.T) {
	shared := map[string]reflect.Type{}
	collect(reflect.TypeFor[v1alpha1.RunSpec](), shared)
	var files [2]map[string]any
	for i, file := range []string{"studies.yaml", "loadtests.yaml"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "chart", "crds", file))
		if err != nil {
			t.Fatal(err)
		}
		var crd map[string]any
		if err := yaml.Unmarshal(text, &crd); err != nil {
			t.Fatal(err)
		}
		version := crd["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)
		root := version["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)
		files[i] = root["properties"].(map[string]any)
	}
	if !reflect.DeepEqual(files[0]["status"], files[1]["status"]) {
		t.Error("the schemas of the status differ")
	}
	spec := func(i int, name string) any {
		return files[i]["spec"].(map[string]any)["properties"].(map[string]any)[name]
	}
	for name := range shared {
		if !reflect.DeepEqual(spec(0, name), spec(1, name)) {
			t.Errorf("the schemas of spec.%s differ", name)
		}
	}
}

// TestDeepCopy fills every field, copies, and looks for what both share.
func TestDeepCopy(t *testing.T) {
	for _, v := range []runtime.Object{&v1alpha1.Study{}, &v1alpha1.StudyList{}, &v1alpha1.LoadTest{}, &v1alpha1.LoadTestList{}} {
		fill(reflect.ValueOf(v).Elem())
		copied := v.DeepCopyObject()
		if !reflect.DeepEqual(v, copied) {
			t.Errorf("%T: the copy differs:\n%+v\n%+v", v, v, copied)
		}
		places := map[uintptr]string{}
		walk(reflect.ValueOf(v).Elem(), "", func(at uintptr, path string) { places[at] = path })
		walk(reflect.ValueOf(copied).Elem(), "", func(at uintptr, path string) {
			if with, shared := places[at]; shared {
				t.Errorf("%T: the copy shares %s with %s", v, path, with)
			}
		})
		if len(places) == 0 {
			t.Errorf("%T: nothing to share was found", v)
		}
	}
}

// fill sets every field that can be set.
func fill(v reflect.Value) {
	switch v.Interface().(type) {
	case metav1.Time:
		v.Set(reflect.ValueOf(metav1.NewTime(time.Unix(1, 0))))
		return
	case resource.Quantity:
		v.Set(reflect.ValueOf(resource.MustParse("1500m")))
		return
	case metav1.FieldsV1:
		return
	case runtime.RawExtension:
		v.Set(reflect.ValueOf(runtime.RawExtension{Raw: []byte(`{"kind":"A"}`)}))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int32, reflect.Int64:
		v.SetInt(7)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			fill(v.Index(i))
		}
	case reflect.Map:
		value := reflect.New(v.Type().Elem()).Elem()
		fill(value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("k").Convert(v.Type().Key()), value)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i))
			}
		}
	}
}

// walk finds the memory that pointers, slices and maps lead to.
func walk(v reflect.Value, path string, found func(at uintptr, path string)) {
	if slices.Contains([]reflect.Type{reflect.TypeFor[metav1.Time](), reflect.TypeFor[resource.Quantity]()}, v.Type()) {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			found(v.Pointer(), path)
			walk(v.Elem(), path, found)
		}
	case reflect.Map:
		found(v.Pointer(), path)
	case reflect.Slice:
		if v.Len() > 0 {
			found(v.Pointer(), path)
		}
		for i := range v.Len() {
			walk(v.Index(i), path+"[]", found)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				walk(v.Field(i), path+"."+v.Type().Field(i).Name, found)
			}
		}
	}
}

func TestCommand(t *testing.T) {
	study := &v1alpha1.Study{Spec: v1alpha1.StudySpec{StudyFile: "arms: [{url: http://a:1}, {go: ./x}]", Quick: true, Arms: []string{"a", "b"}, Budget: "10m"}}
	args, files := study.Command()
	if got, want := strings.Join(args, " "), "run --json --quick --budget=10m --arms=a,b study.yaml"; got != want || string(files["study.yaml"]) != study.Spec.StudyFile {
		t.Errorf("got %q and %q, want %q and the file", got, files, want)
	}
	if got := study.Targets(); !slices.Equal(got, []string{"http://a:1"}) {
		t.Errorf("got the targets %q, want that of the arm which runs already", got)
	}
	args, files = (&v1alpha1.Study{Spec: v1alpha1.StudySpec{Study: "nesting"}}).Command()
	if got, want := strings.Join(args, " "), "run --json nesting"; got != want || len(files) > 0 {
		t.Errorf("got %q and %q, want %q and no file", got, files, want)
	}
	load := &v1alpha1.LoadTest{Spec: v1alpha1.LoadTestSpec{URL: "http://a/", Rate: "poisson:100", Connections: 3, Duration: "5s", FailIf: []string{"p99>5ms"}}}
	args, _ = load.Command()
	if got, want := strings.Join(args, " "), "load --json --rate=poisson:100 --duration=5s --connections=3 --fail-if=p99>5ms http://a/"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
