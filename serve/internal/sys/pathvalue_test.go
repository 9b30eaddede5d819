package sys_test

import (
	"net/http"
	"slices"
	"testing"

	"github.com/tarehq/tare/serve/internal/sys"
)

// ways are the fields of http.Request and the public way.
var ways = map[string]sys.PathFields{"fields": sys.FindPathFields(), "public": {}}

func TestPathFieldsAreKnown(t *testing.T) {
	if !ways["fields"].Known() {
		t.Error("this version of Go keeps path values elsewhere: routers take the slower way")
	}
}

func TestPathNames(t *testing.T) {
	for way, f := range ways {
		var r http.Request
		f.Clear(&r)
		f.Names([]string{"a", "b", "c"}).Set(&r, []string{"1", "", "3"})
		r.SetPathValue("c", "three")
		r.SetPathValue("d", "4")
		got := []string{r.PathValue("a"), r.PathValue("b"), r.PathValue("c"), r.PathValue("d"), r.PathValue("e")}
		if want := []string{"1", "", "three", "4", ""}; !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", way, got, want)
		}
		copied := r.Clone(t.Context())
		r.SetPathValue("a", "changed")
		if got := copied.PathValue("a"); got != "1" {
			t.Errorf("%s: clone got %q after a change, want 1", way, got)
		}
	}
}

func TestPathNamesAreForgotten(t *testing.T) {
	f := sys.FindPathFields()
	var r http.Request
	f.Names([]string{"a", "b"}).Set(&r, []string{"1", "2"})
	f.Names([]string{"c"}).Set(&r, []string{"3"})
	if r.PathValue("a") != "" || r.PathValue("c") != "3" {
		t.Errorf("got a=%q and c=%q, want the last match alone", r.PathValue("a"), r.PathValue("c"))
	}
	f.Clear(&r)
	if r.PathValue("c") != "" {
		t.Errorf("after Clear: got c=%q", r.PathValue("c"))
	}
}

func TestRoom(t *testing.T) {
	f := sys.FindPathFields()
	if !f.Known() {
		t.Skip("there is no room where the fields are not known")
	}
	var q sys.RoomyRequest
	if f.Room(&q.Request, 1) != nil {
		t.Error("room before it was reserved")
	}
	f.Reserve(&q)
	if got := len(f.Room(&q.Request, sys.PathRoom)); got != sys.PathRoom {
		t.Errorf("got room for %d, want %d", got, sys.PathRoom)
	}
	if f.Room(&q.Request, sys.PathRoom+1) != nil {
		t.Error("more room than there is")
	}
	if f.Room(q.WithContext(t.Context()), 1) != nil {
		t.Error("a copy was given the room of the original")
	}
	if f.Room(q.Clone(t.Context()), 1) != nil {
		t.Error("a clone was given room")
	}
	f.Names([]string{"a"}).Set(&q.Request, f.Room(&q.Request, 1))
	if f.Room(&q.Request, 1) != nil {
		t.Error("room that is in use was given again")
	}
	plain := new(http.Request)
	f.Names([]string{"a"}).Set(plain, make([]string, 0, 8))
	if f.Room(plain, 1) != nil {
		t.Error("memory elsewhere was taken for the request's")
	}
	if (sys.PathFields{}).Room(&q.Request, 0) != nil {
		t.Error("room without knowing the fields")
	}
}

func BenchmarkPathValues(b *testing.B) {
	for way, f := range ways {
		b.Run("way="+way, func(b *testing.B) {
			names := f.Names([]string{"a", "b", "c"})
			b.ReportAllocs()
			for b.Loop() {
				r := http.Request{}
				names.Set(&r, []string{"1", "2", "3"})
			}
		})
	}
}
