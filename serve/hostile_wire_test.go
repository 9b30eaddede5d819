package serve_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/tarehq/tare/serve"
)

// sightings are the requests that a handler saw.
type sightings struct {
	mu      sync.Mutex
	targets []string
}

// ServeHTTP reads the whole body and answers 400 if it is malformed.
func (s *sightings) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.targets = append(s.targets, strings.Clone(r.RequestURI))
	s.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	if strings.Contains(string(body), "smuggled") {
		w.Header().Set("X-Body", "held it")
	}
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
	}
}

func (s *sightings) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.targets
	s.targets = nil
	return seen
}

// TestAttacksOnTheWire sends the attacks of the reader's corpus. A file's name
// begins with the status that must come; after any but 200 the server must
// close the connection of itself.
func TestAttacksOnTheWire(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join("internal", "http1", "testdata", "attacks", "*.http"))
	if err != nil || len(paths) < 100 {
		t.Fatalf("finding attacks: %d files, %v", len(paths), err)
	}
	each(t, func(t *testing.T, reuse bool) {
		seen := &sightings{}
		f := fortify(t, &serve.Server{Handler: seen, Reuse: reuse})
		for _, path := range paths {
			in, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			name := strings.TrimSuffix(filepath.Base(path), ".http")
			pieces := []int{len(in), 1}
			if name == "200-close" {
				pieces = pieces[:1] // who sends on after the server's close may miss the answer
			}
			for _, piece := range pieces {
				if err := attackOnce(f, seen, attackOf(t, name, in), piece); err != nil {
					t.Errorf("%s in pieces of %d: %v\n%.300q", name, piece, err, in)
				}
			}
		}
		f.quiet()
	})
}

// assault is one attack and what must come of it.
type assault struct {
	in     []byte
	status int
}

func attackOf(t *testing.T, name string, in []byte) assault {
	t.Helper()
	status, err := strconv.Atoi(name[:3])
	if err != nil {
		t.Fatalf("attack %s: its name begins with no status", name)
	}
	return assault{in, status}
}

func attackOnce(f *fort, seen *sightings, a assault, piece int) error {
	seen.take()
	nc := f.dial()
	defer nc.Close()
	for p := range slices.Chunk(a.in, piece) {
		// A server that refuses may have closed before all is sent.
		if _, err := nc.Write(p); err != nil {
			break
		}
	}
	if a.status == http.StatusOK {
		nc.(*net.TCPConn).CloseWrite()
	}
	statuses, err := answers(nc)
	if err != nil {
		return err
	}
	return a.judge(statuses, seen.take())
}

// judge holds the answers against what the handler saw: one answer a request,
// and one more at most, which is the refusal.
func (a assault) judge(statuses []int, seen []string) error {
	switch {
	case len(statuses) == 0:
		return errors.New("no answer")
	case statuses[len(statuses)-1] != a.status:
		return fmt.Errorf("answers %d, want the last to be %d", statuses, a.status)
	case len(statuses) != len(seen) && len(statuses) != len(seen)+1:
		return fmt.Errorf("answers %d to requests %q", statuses, seen)
	case a.status != http.StatusOK && slices.ContainsFunc(seen, func(s string) bool { return strings.Contains(s, "smuggled") }):
		return fmt.Errorf("the handler saw the smuggled request: %q", seen)
	}
	return nil
}

// answers reads all answers until the server closes.
func answers(r io.Reader) (statuses []int, err error) {
	br := bufio.NewReader(r)
	for {
		if _, err := br.Peek(1); err == io.EOF {
			return statuses, nil
		}
		res, err := http.ReadResponse(br, nil)
		if err != nil {
			return statuses, fmt.Errorf("reading the answer after %d: %w", statuses, err)
		}
		if _, err := io.Copy(io.Discard, res.Body); err != nil {
			return statuses, fmt.Errorf("reading the body of %d: %w", res.StatusCode, err)
		}
		if res.StatusCode != http.StatusContinue {
			statuses = append(statuses, res.StatusCode)
		}
	}
}
