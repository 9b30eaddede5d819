// Command collector answers from a cache that it holds and makes what each
// request needs out of small pieces: something to mark, something to sweep. What
// the collector does about it is set in the environment and when it is built.
package main

import (
	"math/rand/v2"
	"net/http"
	"runtime/debug"
	"strconv"

	"github.com/tarehq/tare/arms/arm"
	"github.com/tarehq/tare/arms/layers/plan"
)

func main() {
	s := newService(entries)
	arm.Main(arm.Options{Handler: s, Facts: facts})
}

// entries of about 128 bytes each are 32 MiB.
const entries = 1 << 18

// pieces of 256 bytes are made for a request: 16 KiB, as decoding a document does.
const pieces = 64

// service holds a cache.
type service struct {
	cache  []*entry
	answer *plan.Answer
}

// entry is something kept. It points to others, as what is kept does.
type entry struct {
	name string
	near [4]*entry
	_    [8]uint64
}

// piece is something made for one request.
type piece struct {
	before *piece
	of     *entry
	data   [30]uint64
}

func newService(n int) *service {
	s := &service{cache: make([]*entry, n), answer: plan.NewAnswer()}
	for i := range s.cache {
		s.cache[i] = &entry{name: "entry " + strconv.Itoa(i)}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for _, e := range s.cache {
		for i := range e.near {
			e.near[i] = s.cache[random.IntN(n)]
		}
	}
	return s
}

func (s *service) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	if last := s.collect(); last.of.name == "" {
		http.Error(w, "an entry is missing", http.StatusInternalServerError)
		return
	}
	s.answer.Write(w)
}

// collect walks through the cache and makes a piece of what it finds at each
// step.
func (s *service) collect() *piece {
	at := s.cache[rand.IntN(len(s.cache))]
	var last *piece
	for i := range pieces {
		p := &piece{before: last, of: at}
		p.data[i%len(p.data)] = uint64(i)
		last, at = p, at.near[i%len(at.near)]
	}
	return last
}

// facts say how this program's collector is set.
func facts() map[string]string {
	limit := "none"
	if n := debug.SetMemoryLimit(-1); n < 1<<62 {
		limit = strconv.FormatInt(n, 10)
	}
	percent := debug.SetGCPercent(100) // it is told by what it was
	debug.SetGCPercent(percent)
	experiments := "default"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "GOEXPERIMENT" {
				experiments = s.Value
			}
		}
	}
	return map[string]string{"GOGC": strconv.Itoa(percent), "GOMEMLIMIT": limit, "GOEXPERIMENT": experiments}
}
