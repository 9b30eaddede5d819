package symptom

import (
	"slices"
	"strings"

	"github.com/tarehq/tare/cost"
)

var (
	// reading is a request's body being read, by net/http, x/net/http2 and serve.
	reading = Calls("net/http.(*body).Read", "net/http.(*http2requestBody).Read", "net/http/internal/http2.(*requestBody).Read",
		"golang.org/x/net/http2.(*requestBody).Read", "github.com/tarehq/tare/serve.(*body).Read", "github.com/tarehq/tare/serve.(*streamBody).Read")
	// answered is the body of an answer to a client, which is the same type.
	answered = Calls("net/http.(*bodyEOFSignal).Read")
	// holding is what keeps all that it reads, however long it is.
	holding = Calls("io.ReadAll", "io/ioutil.ReadAll", "bytes.(*Buffer).ReadFrom", "encoding/json.(*Decoder).", "encoding/json/v2.UnmarshalRead",
		"encoding/json/jsontext.(*Decoder).", "github.com/goccy/go-json.(*Decoder).", "github.com/bytedance/sonic/")
	// bounding is what stands around a handler and refuses bodies that are announced as long.
	bounding = Calls("github.com/tarehq/tare/serve/middleware/limit.", "github.com/tarehq/tare/serve/compress/decompress.", "github.com/labstack/echo/v4/middleware.BodyLimit", "github.com/labstack/echo/v5/middleware.BodyLimit",
		"github.com/go-chi/chi/v5/middleware.RequestSize", "net/http.MaxBytesHandler")
)

// Swallowing matches the reading of a request's whole body into memory where nothing on
// the stack bounds it: no reader between the two that is named for a limit.
func Swallowing(frames []cost.Frame) int {
	from := reading(frames)
	if from < 0 || answered(frames) >= 0 || bounding(frames) >= 0 {
		return -1
	}
	at := holding(frames)
	if at < from || slices.ContainsFunc(frames[from:at], limits) {
		return -1
	}
	return at
}

// Reading matches the reading of a request's body.
func Reading(frames []cost.Frame) int {
	if answered(frames) >= 0 {
		return -1
	}
	return reading(frames)
}

func limits(f cost.Frame) bool {
	fn := strings.ToLower(f.Func)
	return strings.Contains(fn, "limit") || strings.Contains(fn, "maxbytes")
}

var (
	trip    = Calls("net/http.(*Transport).roundTrip")
	opening = Calls("context.WithCancelCause", "context.withCancel")
	hurry   = Calls("context.WithDeadline", "context.WithTimeout", "github.com/tarehq/tare/serve/middleware/timeout.", "github.com/tarehq/tare/serve/client.")
	timer   = Calls("time.NewTimer", "time.newTimer")
	waiting = Calls("net/http.(*persistConn).roundTrip")
	proxy   = Calls("net/http/httputil.(*ReverseProxy)")
)

// Sent matches the allocation of a context that net/http makes once for each request to
// another service. A reverse proxy's are left out: their clients' patience is their limit.
func Sent(frames []cost.Frame) int {
	if opening(frames) < 0 || proxy(frames) >= 0 {
		return -1
	}
	return trip(frames)
}

// Hurrying matches the allocations of time limits: contexts with deadlines, which a
// Client's Timeout is too, and the timer of a Transport's ResponseHeaderTimeout.
func Hurrying(frames []cost.Frame) int {
	if at := hurry(frames); at >= 0 {
		return at
	}
	if timer(frames) < 0 {
		return -1
	}
	return waiting(frames)
}

var series = Outside(Calls("github.com/prometheus/client_golang/prometheus.(*metricMap).getOrCreateMetric", "github.com/VictoriaMetrics/metrics.(*Set).GetOrCreate",
	"go.opentelemetry.io/otel/sdk/metric/internal/aggregate.", "expvar.(*Map)."))

// Series matches the making of series of metrics, by the libraries in wide use, and
// returns who called for them.
func Series(frames []cost.Frame) int { return series(frames) }

var growing = Calls("bytes.growSlice", "bytes.(*Buffer).grow", "bytes.(*Buffer).Grow", "strings.(*Builder).grow", "slices.Grow")

// Growing matches the growing of a buffer within a request, and returns who grew it: the
// next function outward that is not the standard library's.
func Growing(frames []cost.Frame) int {
	at := growing(frames)
	if at < 0 || !cost.InRequest(frames) || Instrument(frames) {
		return -1
	}
	who := slices.IndexFunc(frames[at:], func(f cost.Frame) bool { return !f.Standard() })
	if who < 0 {
		return -1
	}
	return at + who
}
