package capture

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarehq/tare/load"
)

// A load that is only ever refused says nothing about the service's own work.
func TestLoadRefused(t *testing.T) {
	var refused atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		refused.Add(1)
		http.Error(w, "who are you?", http.StatusUnauthorized)
	}))
	defer s.Close()
	l, err := StartLoad(t.Context(), load.Options{Targets: []load.Target{{URL: s.URL}}, Connections: 1})
	if err != nil {
		t.Fatal(err)
	}
	for before := refused.Load(); refused.Load() < before+5; { // in the measured part
		time.Sleep(time.Millisecond)
	}
	if got, err := l.End(); err != nil || len(got) != 1 || !strings.Contains(got[0].Error(), "status 4xx or 5xx") {
		t.Errorf("got warnings %q and %v, want that the answers were errors", got, err)
	}
}
