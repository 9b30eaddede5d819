//go:build !linux

package watch

import (
	"fmt"
	"runtime"
	"time"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/bpf"
)

// instance is a process that is watched.
type instance struct {
	Build
	pid  int
	pod  string
	used time.Duration
	last counted

	counted time.Time
}

// finder finds processes, which is not possible here.
type finder struct{ named bool }

func newFinder(o Options) *finder {
	return &finder{len(o.PIDs) > 0 || len(o.Groups) > 0 || o.AllGo || o.Pods}
}

func (f *finder) any() bool { return f.named }

func (f *finder) check() error {
	return fmt.Errorf("watching processes needs Linux, and this is %s: %w", runtime.GOOS, cost.ErrNotSupported)
}

func (f *finder) build(int) (Build, bool)         { return Build{}, false }
func (f *finder) find() ([]int, error)            { return nil, f.check() }
func (f *finder) instances() []*instance          { return nil }
func (f *finder) instance(*bpf.Process) *instance { return nil }
func (f *finder) forget()                         {}
func (f *finder) ended() bool                     { return false }
func usage() (cpu time.Duration, memory uint64)   { return 0, 0 }
