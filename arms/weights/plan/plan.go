// Package plan says what the arms of the study weights put around their handler, so that
// middlewares of different authors are held to the same work.
//
// Each arm has one layer around a handler that answers 1 KiB of JSON to GET /orders/7.
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

// Log returns where logs go: a file that keeps nothing, so that lines cost their system
// call and no disk.
func Log() io.Writer {
	f, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
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

// Names returns what a flag asks for: no layer (none), all that guard a service
// (guards), outermost first, or one that there is a maker of.
func Names[M any](layer string, guards []string, makers map[string]M) ([]string, error) {
	switch _, ok := makers[layer]; {
	case layer == "none":
		return nil, nil
	case layer == "guards":
		return guards, nil
	case ok:
		return []string{layer}, nil
	}
	return nil, fmt.Errorf("layer %q: there are none, guards, %q", layer, slices.Sorted(maps.Keys(makers)))
}
