package carry_test

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarehq/tare/serve/proxy/internal/carry"
)

// slow is a client that takes its time, in which the upstream does not pause.
type slow struct {
	strings.Builder
	takes time.Duration
}

func (s *slow) Write(p []byte) (int, error) {
	time.Sleep(s.takes)
	return s.Builder.Write(p)
}

// TestPause has a body be closed that pauses for longer than it may, and no other: what a client
// takes is no pause.
func TestPause(t *testing.T) {
	const pause = time.Second
	for _, c := range []struct {
		name          string
		between, most time.Duration
		client        time.Duration
		want          string
		broken        bool
	}{
		{"short pauses", pause - time.Millisecond, pause, 0, "abc", false},
		{"a long pause", pause + time.Millisecond, pause, 0, "a", true},
		{"a slow client", 0, pause, 3 * pause, "abc", false},
		{"no bound", time.Hour, 0, 0, "abc", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				from, upstream := io.Pipe()
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					for i, piece := range []string{"a", "b", "c"} {
						if i > 0 {
							time.Sleep(c.between)
						}
						if _, err := io.WriteString(upstream, piece); err != nil {
							return
						}
					}
					upstream.Close()
				}()
				to, begun := &slow{takes: c.client}, time.Now()
				reading, writing := carry.Body(to, from, nil, c.most)
				if (reading != nil) != c.broken || writing != nil || to.String() != c.want {
					t.Errorf("got %q, reading: %v, writing: %v; want %q", to, reading, writing, c.want)
				}
				if took := time.Since(begun); c.broken && took != pause {
					t.Errorf("it took %s to give up, want %s", took, pause)
				}
				if _, err := from.Read(make([]byte, 1)); err == nil {
					t.Error("the body goes on")
				}
				<-ended
			})
		})
	}
}
