package doctorverb

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cost/capture"
	"github.com/tarehq/tare/cost/doctor"
	"github.com/tarehq/tare/cost/doctor/proc"
	"github.com/tarehq/tare/cost/pprof"
)

// TestLeaks asks services with and without the collector's word on goroutines
// that wait for ever: that there is none is no matter, that it fails is.
func TestLeaks(t *testing.T) {
	recorded, err := os.ReadFile("../../../../cost/pprof/testdata/goroutineleak.pb.gz")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		status int
		answer []byte
		stacks int
		warns  string
	}{
		{http.StatusOK, recorded, 2, ""},
		{http.StatusNotFound, []byte("Unknown profile"), 0, ""},
		{http.StatusForbidden, []byte("not you"), 0, "403 Forbidden"},
		{http.StatusOK, []byte("no profile"), 0, "goroutineleak: "},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(tc.status)
			w.Write(tc.answer)
		}))
		find, err := pprof.Find(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		g := &gathering{Evidence: &doctor.Evidence{}}
		g.findLeaks(t.Context(), find)
		s.Close()
		warned := strings.Join(g.Warnings, "; ")
		if len(g.Leaked) != tc.stacks || (warned == "") != (tc.warns == "") || !strings.Contains(warned, tc.warns) {
			t.Errorf("%d %.20q: %d stacks, warning %q, want %d and %q", tc.status, tc.answer, len(g.Leaked), warned, tc.stacks, tc.warns)
		}
	}
}

// TestProbed sends half a header to the service's own port, and to that of its
// profiles only if the process listens on no other.
func TestProbed(t *testing.T) {
	serve := func() *httptest.Server {
		s := httptest.NewUnstartedServer(http.NotFoundHandler())
		s.Config.ReadHeaderTimeout = time.Millisecond
		s.Start()
		t.Cleanup(s.Close)
		return s
	}
	profiles := serve()
	find, err := pprof.Find(profiles.URL)
	if err != nil {
		t.Fatal(err)
	}
	p := &patient{target: &capture.Target{Profiles: find}, pid: os.Getpid()}
	probe := func(c Command) *gathering {
		g := &gathering{Evidence: &doctor.Evidence{Reasons: map[doctor.Part]string{}}}
		c.For.For = time.Minute // the server gives up long before
		c.probe(t.Context(), p, g)
		return g
	}
	if ports, err := proc.Listening(p.pid); err == nil && len(ports) == 1 {
		if g := probe(Command{}); g.Probe == nil || "http://"+g.Probe.Addr != profiles.URL {
			t.Errorf("one port: %+v, %v, want a probe of it", g.Probe, g.Reasons)
		}
	}
	own := serve()
	if g := probe(Command{}); g.Probe != nil || !strings.Contains(g.Reasons[doctor.HalfHeader], "--load") {
		t.Errorf("two ports: %+v, %v, want no probe, and to be told which by --load", g.Probe, g.Reasons)
	}
	if g := probe(Command{Load: cli.Load{URL: own.URL}}); g.Probe == nil || "http://"+g.Probe.Addr != own.URL {
		t.Errorf("two ports and --load: %+v, %v, want a probe of %s", g.Probe, g.Reasons, own.URL)
	}
}
