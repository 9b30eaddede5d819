package upload_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/watchverb/upload"
	"github.com/tarehq/tare/cost"
)

// exported is a request as the protocol has it: every field of its messages that may be
// used, and no other.
type exported struct {
	ResourceProfiles []struct {
		Resource struct {
			Attributes []struct {
				Key   string `json:"key"`
				Value struct {
					StringValue string `json:"stringValue"`
				} `json:"value"`
			} `json:"attributes"`
		} `json:"resource"`
		ScopeProfiles []struct {
			Scope    struct{ Name, Version string } `json:"scope"`
			Profiles []struct {
				SampleType   struct{ TypeStrindex, UnitStrindex int } `json:"sampleType"`
				TimeUnixNano json.Number                              `json:"timeUnixNano"`
				DurationNano json.Number                              `json:"durationNano"`
				Samples      []struct {
					StackIndex       int           `json:"stackIndex"`
					AttributeIndices []int         `json:"attributeIndices"`
					Values           []json.Number `json:"values"`
				} `json:"samples"`
			} `json:"profiles"`
		} `json:"scopeProfiles"`
	} `json:"resourceProfiles"`
	Dictionary struct {
		MappingTable  []struct{} `json:"mappingTable"`
		LinkTable     []struct{} `json:"linkTable"`
		StringTable   []string   `json:"stringTable"`
		FunctionTable []struct {
			NameStrindex, FilenameStrindex int
			StartLine                      json.Number
		} `json:"functionTable"`
		LocationTable []struct {
			Lines []struct {
				FunctionIndex int
				Line          json.Number
			} `json:"lines"`
		} `json:"locationTable"`
		AttributeTable []struct {
			KeyStrindex int
			Value       struct{ StringValue string }
		} `json:"attributeTable"`
		StackTable []struct{ LocationIndices []int } `json:"stackTable"`
	} `json:"dictionary"`
}

// texts are the samples of a request, each as a line: its value, its attributes, and its
// stack, innermost first.
func (e *exported) texts(t *testing.T) (all []string) {
	t.Helper()
	d := &e.Dictionary
	for name, first := range map[string]any{
		"mapping": d.MappingTable[0], "link": d.LinkTable[0], "string": d.StringTable[0], "function": d.FunctionTable[0],
		"location": d.LocationTable[0], "attribute": d.AttributeTable[0], "stack": d.StackTable[0],
	} {
		if v := reflect.ValueOf(first); !v.IsZero() && !(name == "stack" && len(d.StackTable[0].LocationIndices) == 0) {
			t.Errorf("index 0 of the %s table is %+v, want what stands for nothing", name, first)
		}
	}
	for _, s := range e.ResourceProfiles[0].ScopeProfiles[0].Profiles[0].Samples {
		text := fmt.Sprint(s.Values)
		for _, k := range s.AttributeIndices {
			a := d.AttributeTable[k]
			text += " " + d.StringTable[a.KeyStrindex] + "=" + a.Value.StringValue
		}
		for _, k := range d.StackTable[s.StackIndex].LocationIndices {
			l := d.LocationTable[k].Lines[0]
			f := d.FunctionTable[l.FunctionIndex]
			text += fmt.Sprintf(" %s@%s:%s", d.StringTable[f.NameStrindex], d.StringTable[f.FilenameStrindex], l.Line)
		}
		all = append(all, text)
	}
	return all
}

// TestOTLP sends a profile to a receiver that takes nothing but what the protocol has.
func TestOTLP(t *testing.T) {
	var got exported
	var header http.Header
	reply := "{}"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		header = r.Header
		dec := json.NewDecoder(bytes.NewReader(body))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&got); err != nil || r.Method != http.MethodPost || r.URL.Path != "/v1development/profiles" {
			http.Error(w, fmt.Sprint(err), http.StatusBadRequest)
			return
		}
		io.WriteString(w, reply)
	}))
	defer server.Close()
	auth := cost.Frame{Func: "shop/mw.(*Auth).ServeHTTP", File: "/src/shop/auth.go", Line: 34, Decl: 30}
	serve := []cost.Frame{{Func: "net/http.serverHandler.ServeHTTP"}, {Func: "net/http.(*conn).serve"}, {Func: "runtime.goexit"}}
	begun := time.Unix(1_700_000_000, 5)
	p := &upload.Profile{
		Service: "shop", Build: "x", Begun: begun, Duration: 10 * time.Second, Kinds: map[string]string{"mw.(*Auth).ServeHTTP": "middleware"}, Rules: new(cost.Rules),
		Stacks: []cost.Stack{
			{Frames: append([]cost.Frame{auth}, serve...), Count: 2, Value: 1500},
			{Frames: append([]cost.Frame{{Func: "main.burn", Line: 7}, auth}, serve...), Count: 1, Value: 500},
			{Frames: serve, Count: 1, Value: 0.2}, // less than there is a number for
		},
	}
	send := func() error {
		s, err := upload.Open(server.URL + "/v1development/profiles")
		if err != nil {
			t.Fatal(err)
		}
		s.Send(p)
		return s.Close()
	}
	if err := send(); err != nil {
		t.Fatal(err)
	}
	if header.Get("Content-Type") != "application/json" || header.Get("OTLP-Profiles-Development-Version") != "1" {
		t.Errorf("got header fields %v", header)
	}
	one := got.ResourceProfiles[0].ScopeProfiles[0].Profiles[0]
	kind := got.Dictionary.StringTable[one.SampleType.TypeStrindex] + " " + got.Dictionary.StringTable[one.SampleType.UnitStrindex]
	if a := got.ResourceProfiles[0].Resource.Attributes; len(a) != 2 || a[0].Key != "service.name" || a[0].Value.StringValue != "shop" ||
		one.TimeUnixNano.String() != fmt.Sprint(begun.UnixNano()) || one.DurationNano != "10000000000" || kind != "cpu nanoseconds" {
		t.Errorf("got %+v of %+v, in %s", one, a, kind)
	}
	texts := got.texts(t)
	const owner = " tare.owner=mw.(*Auth).ServeHTTP tare.kind=middleware tare.cause=own"
	if len(texts) != 2 || !strings.HasPrefix(texts[0], "[1500]"+owner+" shop/mw.(*Auth).ServeHTTP@/src/shop/auth.go:34 net/http.serverHandler") ||
		!strings.HasPrefix(texts[1], "[500]"+owner+" main.burn@:7 shop/mw.") {
		t.Errorf("got %q", texts)
	}
	for _, reply = range []string{`{"partialSuccess":{"rejectedProfiles":"1","errorMessage":"too old"}}`, "hello"} {
		if err := send(); err == nil || !strings.Contains(err.Error(), "too old") && !strings.Contains(err.Error(), "hello") {
			t.Errorf("%s: got %v, want what the receiver said", reply, err)
		}
	}
}
