package rivals_test

import (
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/golang/snappy"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tarehq/tare/serve/middleware/metrics"
	"github.com/tarehq/tare/serve/middleware/metrics/remotewrite"
)

// TestRemoteWrite has the libraries that receivers use unpack and decode what
// serve/middleware/metrics/remotewrite sends: all of the samples, each with its labels in
// order. It is longer than a literal of snappy's may be.
func TestRemoteWrite(t *testing.T) {
	var body []byte
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ = io.ReadAll(r.Body)
	}))
	defer receiver.Close()
	m, err := metrics.New(metrics.Options{Service: "shop", NoRuntime: true, Route: func(r *http.Request) string { return r.URL.Path }})
	if err != nil {
		t.Fatal(err)
	}
	h := m.Middleware(http.NotFoundHandler())
	const routes = 50
	for i := range routes {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/"+strings.Repeat("x", i), nil))
	}
	sender, err := remotewrite.New(remotewrite.Options{URL: receiver.URL, Metrics: m, Labels: map[string]string{"instance": "a:1"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := sender.Send(t.Context()); err != nil {
		t.Fatal(err)
	}
	message, err := snappy.Decode(nil, body)
	if err != nil || len(message) < 1<<16 {
		t.Fatalf("%d bytes unpacked: %v", len(message), err)
	}
	got := map[string]float64{}
	for _, series := range messages(t, message, 1) {
		labels, last := "", ""
		for _, label := range messages(t, series, 1) {
			name, value := string(messages(t, label, 1)[0]), string(messages(t, label, 2)[0])
			if name <= last || value == "" {
				t.Errorf("label %q=%q after %q", name, value, last)
			}
			labels, last = labels+name+"="+value+",", name
		}
		samples := messages(t, series, 2)
		if len(samples) != 1 {
			t.Fatalf("%s: %d samples", labels, len(samples))
		}
		_, _, n := protowire.ConsumeTag(samples[0])
		bits, _ := protowire.ConsumeFixed64(samples[0][n:])
		got[labels] = math.Float64frombits(bits)
	}
	all := m.Samples()
	if len(got) != len(all) || len(all) < routes*15 {
		t.Errorf("%d series, want those of %d samples", len(got), len(all))
	}
	const count = "__name__=http_server_request_duration_seconds_count,http_request_method=GET,http_response_status_code=404,http_route=/xxx,instance=a:1,service_name=shop,"
	if v, ok := got[count]; v != 1 {
		t.Errorf("%s: %v (there: %t), want 1", count, v, ok)
	}
}

// messages returns what the fields of a number hold, of a message whose fields have
// lengths, or of which that one has.
func messages(t *testing.T, b []byte, number protowire.Number) (all [][]byte) {
	t.Helper()
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			t.Fatal(protowire.ParseError(n))
		}
		b = b[n:]
		if num == number && typ == protowire.BytesType {
			v, n := protowire.ConsumeBytes(b)
			if n < 0 {
				t.Fatal(protowire.ParseError(n))
			}
			all, b = append(all, v), b[n:]
			continue
		}
		n = protowire.ConsumeFieldValue(num, typ, b)
		if n < 0 {
			t.Fatal(protowire.ParseError(n))
		}
		b = b[n:]
	}
	return all
}
