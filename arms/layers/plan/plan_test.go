package plan_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/tarehq/tare/arms/layers/plan"
)

func TestDepth(t *testing.T) {
	for text, want := range map[string]plan.Depth{"0": 0, "7": 7, "50": 50} {
		var d plan.Depth
		if err := d.Set(text); err != nil || d != want || d.String() != text {
			t.Errorf("Set(%q): got %d, %v", text, d, err)
		}
	}
	for _, text := range []string{"", "-1", "51", "five", "7 8"} {
		var d plan.Depth
		if err := d.Set(text); err == nil {
			t.Errorf("Set(%q): got %d, want an error", text, d)
		}
	}
}

func TestAnswer(t *testing.T) {
	w := httptest.NewRecorder()
	a := plan.NewAnswer()
	a.Write(w)
	if !json.Valid(w.Body.Bytes()) || w.Body.Len() != 1024 || w.Header().Get("Content-Type") != plan.JSON {
		t.Errorf("got %v and %d bytes", w.Header(), w.Body.Len())
	}
	quiet := &discard{http.Header{}}
	if n := testing.AllocsPerRun(100, func() { a.Write(quiet) }); n != 0 {
		t.Errorf("got %v allocations", n)
	}
}

type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }
func (d *discard) WriteHeader(int)             {}

func TestLayersThatSeeNothingFail(t *testing.T) {
	users := plan.Users(2)
	plan.Saw(http.StatusOK)
	plan.Found(users[1], users[1])
	for name, f := range map[string]func(){
		"no status":     func() { plan.Saw(0) },
		"no value":      func() { plan.Found(nil, users[0]) },
		"another value": func() { plan.Found(users[1], users[0]) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: got no panic", name)
				}
			}()
			f()
		}()
	}
}
