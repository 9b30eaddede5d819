package symptom_test

import (
	"testing"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/doctor/symptom"
)

// stack is of functions, innermost first, in a handler.
func stack(funcs ...string) []cost.Frame {
	var frames []cost.Frame
	for _, fn := range append(funcs, "example.org/shop.(*cart).ServeHTTP", "net/http.serverHandler.ServeHTTP", "net/http.(*conn).serve") {
		frames = append(frames, cost.Frame{Func: fn})
	}
	return frames
}

const body = "net/http.(*body).Read"

func TestMatches(t *testing.T) {
	for _, tc := range []struct {
		name  string
		match symptom.Match
		funcs []string
		want  int
	}{
		{"a body read whole", symptom.Swallowing, []string{body, "io.ReadAll"}, 1},
		{"a body decoded", symptom.Swallowing, []string{"runtime.memmove", body, "encoding/json.(*Decoder).refill", "encoding/json.(*Decoder).Decode"}, 3},
		{"over HTTP/2", symptom.Swallowing, []string{"net/http.(*http2requestBody).Read", "io.ReadAll"}, 1},
		{"by serve", symptom.Swallowing, []string{"github.com/tarehq/tare/serve.(*body).readLocked", "github.com/tarehq/tare/serve.(*body).Read", "io.ReadAll"}, 2},
		{"the reader within the body", symptom.Swallowing, []string{"io.(*LimitedReader).Read", "net/http.(*body).readLocked", body, "io.ReadAll"}, 3},
		{"a bound by net/http", symptom.Swallowing, []string{body, "net/http.(*maxBytesReader).Read", "io.ReadAll"}, -1},
		{"a bound by io", symptom.Swallowing, []string{body, "io.(*LimitedReader).Read", "io.ReadAll", "net/http.parsePostForm"}, -1},
		{"a bound of echo's", symptom.Swallowing, []string{body, "github.com/labstack/echo/v4/middleware.(*limitedReader).Read", "encoding/json.(*Decoder).refill"}, -1},
		{"a layer that has looked at its length", symptom.Swallowing, []string{body, "io.ReadAll", "example.org/shop.add", "github.com/tarehq/tare/serve/middleware/limit.(*handler).ServeHTTP"}, -1},
		{"a body copied", symptom.Swallowing, []string{body, "io.copyBuffer", "io.Copy"}, -1},
		{"an answer's body", symptom.Swallowing, []string{body, "net/http.(*bodyEOFSignal).Read", "io.ReadAll"}, -1},
		{"a file", symptom.Swallowing, []string{"os.(*File).Read", "io.ReadAll"}, -1},
		{"an answer's body is none of a request", symptom.Reading, []string{body, "net/http.(*bodyEOFSignal).Read", "io.ReadAll"}, -1},
		{"a body copied is read", symptom.Reading, []string{body, "io.copyBuffer", "io.Copy"}, 0},

		{"a request sent", symptom.Sent, []string{"context.withCancel", "context.WithCancelCause", "net/http.(*Transport).roundTrip", "net/http.send"}, 2},
		{"a request sent by a reverse proxy", symptom.Sent, []string{"context.withCancel", "net/http.(*Transport).roundTrip", "net/http/httputil.(*ReverseProxy).ServeHTTP"}, -1},
		{"a context of the handler's", symptom.Sent, []string{"context.withCancel", "context.WithCancel"}, -1},
		{"a client's time-out", symptom.Hurrying, []string{"context.WithDeadlineCause", "context.WithDeadline", "net/http.setRequestCancel", "net/http.send"}, 1},
		{"a transport's", symptom.Hurrying, []string{"time.newTimer", "time.NewTimer", "net/http.(*persistConn).roundTrip"}, 2},
		{"another timer", symptom.Hurrying, []string{"time.NewTimer", "net/http.(*persistConn).wroteRequest", "net/http.(*persistConn).readLoop"}, -1},

		{"gzip", symptom.Deflating, []string{"compress/flate.(*deflateFast).encode", "compress/flate.(*compressor).encSpeed", "compress/flate.(*Writer).Write", "compress/gzip.(*Writer).Write"}, 4},
		{"gzip, for a middleware", symptom.Deflating, []string{"compress/flate.(*huffmanBitWriter).writeTokens", "compress/gzip.(*Writer).Close", "github.com/go-chi/chi/v5/middleware.(*compressResponseWriter).Close"}, 2},
		{"gzip's output is not gzip", symptom.Deflating, []string{"net/http.(*response).Write", "compress/flate.(*huffmanBitWriter).write", "compress/flate.(*Writer).Write", "compress/gzip.(*Writer).Write"}, -1},
		{"gzip's output", symptom.Sending, []string{"net/http.(*response).Write", "compress/flate.(*huffmanBitWriter).write", "compress/flate.(*huffmanBitWriter).writeTokens", "compress/gzip.(*Writer).Write"}, 4},
		{"what was shortened", symptom.Storing, []string{"net/http.(*response).Write", "compress/flate.(*huffmanBitWriter).write", "compress/flate.(*huffmanBitWriter).writeTokens", "compress/gzip.(*Writer).Write"}, -1},
		{"what was stored", symptom.Storing, []string{"net/http.(*response).Write", "compress/flate.(*huffmanBitWriter).write", "compress/flate.(*huffmanBitWriter).writeBytes", "compress/gzip.(*Writer).Write"}, 4},
		{"what was stored, klauspost's", symptom.Storing, []string{"net/http.(*response).Write", "github.com/klauspost/compress/flate.(*huffmanBitWriter).write", "github.com/klauspost/compress/flate.(*huffmanBitWriter).writeBytes", "github.com/klauspost/compress/gzip.(*Writer).Write"}, 4},

		{"a series of client_golang's", symptom.Series, []string{"github.com/prometheus/client_golang/prometheus.newHistogram", "github.com/prometheus/client_golang/prometheus.(*metricMap).getOrCreateMetricWithLabelValues", "github.com/prometheus/client_golang/prometheus.(*HistogramVec).WithLabelValues"}, 3},
		{"one that was there", symptom.Series, []string{"github.com/prometheus/client_golang/prometheus.(*histogram).Observe"}, -1},
		{"a series of expvar's", symptom.Series, []string{"internal/sync.(*HashTrieMap).LoadOrStore", "expvar.(*Map).Add"}, 2},
		{"nothing", symptom.Series, nil, -1},
	} {
		if got := tc.match(stack(tc.funcs...)); got != tc.want {
			t.Errorf("%s: %q: got frame %d, want %d", tc.name, tc.funcs, got, tc.want)
		}
	}
	for _, tc := range []struct {
		funcs []string
		want  string
	}{
		{[]string{"regexp/syntax.Parse", "regexp.compile", "regexp.MustCompile"}, "compiling regular expressions"},
		{[]string{"regexp.(*Regexp).doExecute", "regexp.(*Regexp).MatchString"}, ""},
		{[]string{"text/template/parse.Parse", "html/template.(*Template).Parse"}, "parsing templates"},
		{[]string{"text/template.(*state).walk", "html/template.(*Template).Execute"}, ""},
		{[]string{"encoding/asn1.parseField", "crypto/x509.ParsePKCS8PrivateKey"}, "parsing or making keys"},
		{[]string{"crypto/rsa.SignPKCS1v15"}, ""},
		{[]string{"time.LoadLocationFromTZData", "time.LoadLocation"}, "loading time zones"},
		{nil, ""},
	} {
		if got := symptom.Setup(stack(tc.funcs...)); got != tc.want {
			t.Errorf("%q: got the setup %q, want %q", tc.funcs, got, tc.want)
		}
	}
	for _, m := range []symptom.Match{symptom.Swallowing, symptom.Reading, symptom.Sent, symptom.Hurrying, symptom.Deflating, symptom.Storing, symptom.Series, symptom.Logging, symptom.Deferring, symptom.Growing, symptom.Hashing} {
		if got := m(nil); got != -1 {
			t.Errorf("no frames: got %d, want -1", got)
		}
	}
}
