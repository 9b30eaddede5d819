package headline_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tarehq/tare/kube/operator/headline"
	"github.com/tarehq/tare/load"
)

// TestVerdictOfLoad reads the result of a load that is made here.
func TestVerdictOfLoad(t *testing.T) {
	var n atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if n.Add(1)%4 == 0 {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	defer s.Close()
	res, err := load.Run(t.Context(), load.Options{Targets: []load.Target{{URL: s.URL}}, Connections: 1, Requests: 200})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(res)
	if err != nil {
		t.Fatal(err)
	}
	text = []byte(`{"thresholds":[{"fail_if":"p99>1us","outcome":"failed","value":"p99 90 µs"}],` + strings.TrimPrefix(string(text), "{"))
	got, err := headline.Of("LoadTest", text)
	if err != nil || !strings.Contains(got, "/s, p50 ") || !strings.Contains(got, "25.0 % failed, p99>1us failed p99 90 µs") {
		t.Errorf("got %q, %v, want the rate, the median, a quarter failed, and the threshold", got, err)
	}
}

// TestVerdictOfStudy reads a report as tare writes it.
func TestVerdictOfStudy(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "lab", "report", "testdata", "nesting.json"))
	if err != nil {
		t.Fatal(err)
	}
	var report struct{ Headline string }
	if err := json.Unmarshal(text, &report); err != nil {
		t.Fatal(err)
	}
	if got, err := headline.Of("Study", text); err != nil || got == "" || got != report.Headline {
		t.Errorf("got %q, %v, want %q", got, err, report.Headline)
	}
	for kind, text := range map[string]string{"Study": "{}", "LoadTest": `{"counts":{}}`} {
		if got, err := headline.Of(kind, []byte(text)); err == nil {
			t.Errorf("%s: made %q of %s", kind, got, text)
		}
		if got, err := headline.Of(kind, []byte("Killed")); err == nil {
			t.Errorf("%s: made %q of no JSON", kind, got)
		}
	}
}

func TestComplaint(t *testing.T) {
	stderr := "building arms …\ntare: no study is called \"x\"\ntare: hint: `tare list` shows them\n"
	if got, want := headline.Complaint([]byte(stderr)), `no study is called "x"`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := headline.Complaint([]byte("Killed\n")); got != "" {
		t.Errorf("got %q, want nothing", got)
	}
}

func TestCut(t *testing.T) {
	for _, tt := range []struct {
		text string
		most int
		want string
	}{{"abc", 3, "abc"}, {"abcdefghij", 8, "abcd …"}, {"µµµµµ", 9, "µµ …"}} {
		if got := headline.Cut(tt.text, tt.most); got != tt.want || len(got) > tt.most {
			t.Errorf("%q, %d: got %q, want %q", tt.text, tt.most, got, tt.want)
		}
	}
}
