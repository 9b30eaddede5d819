// Package plan says what the arms of the studies weights and guards put around their
// handler, so that middlewares of different authors are held to the same work.
//
// An arm of weights has one layer around a handler that answers 1 KiB of JSON to GET /orders/7.
// Its request has what the layers look at: a bearer token, a request's identifier, a
// browser's fields, an origin of another site. Logs go to [Log]. Limits are so wide that
// nothing is refused.
package plan

import (
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	layers "github.com/tarehq/tare/arms/layers/plan"
)

// Secret signs the token of the study's request by HS256.
var Secret = []byte("a secret of at least thirty-two bytes")

// The figures that layers are set up with.
const (
	Rate     = 1 << 30          // requests a second and client
	Timeout  = 30 * time.Second // of a request
	InFlight = 10_000           // requests
	Body     = 1 << 20          // bytes
	Origin   = "https://shop.example"
)

// Proxies are those whose X-Forwarded-For is believed: the study's load, and tests.
func Proxies() []string { return []string{"127.0.0.0/8", "192.0.2.0/24"} }

// Log returns where logs go: a file that keeps nothing, so that lines cost their system
// call and no disk.
func Log() io.Writer { return open(os.DevNull) }

// File returns where the logs of study guards go: a file in the working directory, which
// for an arm is the trial's own, in the folder for temporary files.
func File() *os.File { return open("access.log") }

func open(name string) *os.File {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		panic(err)
	}
	return f
}

// User and Password may pass, and the key of the study's request may.
const (
	User     = "shop"
	Password = "correct horse battery staple"
	Key      = "JBSWY3DPEHPK3PXPJBSWY3DPEH"
)

// WithPassword has h see the user's password in place of the study's token.
func WithPassword(h http.Handler) http.Handler {
	r := &http.Request{Header: http.Header{}}
	r.SetBasicAuth(User, Password)
	return &withPassword{r.Header["Authorization"], h}
}

type withPassword struct {
	field []string
	next  http.Handler
}

func (h *withPassword) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r.Header["Authorization"] = h.field
	h.next.ServeHTTP(w, r)
}

// Denied returns 100,000 prefixes, none of which any client here has.
func Denied() []netip.Prefix {
	random := rand.New(rand.NewPCG(1, 2))
	all := make([]netip.Prefix, 100_000)
	for i := range all {
		a := netip.AddrFrom4([4]byte{byte(16 + random.IntN(64)), byte(random.Uint32()), byte(random.Uint32()), byte(random.Uint32())})
		all[i], _ = a.Prefix(20 + random.IntN(13)) // never fails
	}
	return all
}

// NewAnswer returns what every arm answers.
func NewAnswer() *layers.Answer { return layers.NewAnswer() }

// AnswerType is the Content-Type of what every arm answers.
const AnswerType = layers.JSON

// AnswerBody returns its body.
func AnswerBody() []byte { return layers.Body() }

// Names returns what a flag asks for: no layer (none), all that guard a service
// (guards), or those named with commas between. The outermost is first. There must be
// makers of them.
func Names[M any](layer string, guards []string, makers map[string]M) ([]string, error) {
	switch layer {
	case "none":
		return nil, nil
	case "guards":
		return guards, nil
	}
	names := strings.Split(layer, ",")
	for _, name := range names {
		if _, ok := makers[name]; !ok {
			return nil, fmt.Errorf("layer %q: there are none, guards, %q", name, slices.Sorted(maps.Keys(makers)))
		}
	}
	return names, nil
}
