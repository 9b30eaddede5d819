package diffverb

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cmd/tare/internal/runs"
	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/capture"
	"github.com/tarehq/tare/cost/diff"
	"github.com/tarehq/tare/cost/pprof"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/tally"
)

// side is A or B with its captures.
type side struct {
	source      string
	live        bool            // it is a service that runs
	service     capture.Service // if it is live
	cpu, allocs []diff.Capture
	warnings    []error // of the captures, one of each kind
}

// checkSources refuses sides of which one was sampled from outside and the other by the
// service's own profiler. These differ by some per cent of every owner, and by rows
// that only one of them has, which would be taken for a difference of the programs.
func checkSources(a, b *side) error {
	for _, s := range [][2]*side{{a, b}, {b, a}} {
		if s[0].outside() && s[1].inside() {
			return cli.Usage("name both sides by their process IDs, or both from the services' own profiles",
				fmt.Errorf("%s is sampled from outside and %s by the service's own profiler, which see the same program differently", s[0].shown(), s[1].shown()))
		}
	}
	return nil
}

// outside reports whether a side's CPU is sampled from outside: there the kernel's
// own functions are seen.
func (s *side) outside() bool {
	if s.live {
		return s.service.Outside()
	}
	return slices.ContainsFunc(s.cpu, func(c diff.Capture) bool {
		return slices.ContainsFunc(c.Stacks, func(s cost.Stack) bool {
			return len(s.Frames) > 0 && strings.HasPrefix(s.Frames[0].Func, "[kernel]")
		})
	})
}

// inside reports whether a side's CPU is sampled by the service's own profiler.
func (s *side) inside() bool { return (s.live || len(s.cpu) > 0) && !s.outside() }

// shown is the source as others may read it: without a password that is in a URL.
func (s *side) shown() string {
	if s.live && s.service.URL != "" && strings.Contains(s.source, "@") {
		if service, err := pprof.Find(s.source); err == nil {
			return service.String()
		}
	}
	return s.source
}

func (s *side) add(kind pprof.Kind, sampled []cost.Stack, w cost.Window) {
	c := diff.Capture{Stacks: sampled, Window: w}
	if kind == pprof.Allocs {
		s.allocs = append(s.allocs, c)
	} else {
		s.cpu = append(s.cpu, c)
	}
}

// warn adds what no capture before has warned of, but for its figures.
func (s *side) warn(warnings []error) {
	kind := func(err error) string { return tally.Figureless(err.Error()) }
	for _, w := range warnings {
		if !slices.ContainsFunc(s.warnings, func(o error) bool { return kind(o) == kind(w) }) {
			s.warnings = append(s.warnings, w)
		}
	}
}

// read reads what is saved, or finds that the side is a service.
func (s *side) read(t *cli.Terminal) error {
	if strings.Contains(s.source, "://") {
		return s.readLive()
	}
	names := strings.Split(s.source, ",")
	info, err := os.Stat(s.source)
	if err == nil && info.IsDir() {
		return s.readFolder()
	}
	if _, err := os.Stat(names[0]); err == nil || len(names) > 1 || strings.HasSuffix(names[0], ".gz") {
		return s.readFiles(names)
	}
	if run, cell, ok := cutArm(s.source); ok {
		return s.readArm(t, run, cell)
	}
	if !strings.Contains(s.source, ":") && (strings.HasSuffix(s.source, "/") || strings.HasPrefix(s.source, "/") || strings.HasPrefix(s.source, ".")) {
		return &cli.Failure{Status: cli.ExitFailed, Err: fmt.Errorf("%s: there is no such file or folder", s.source), Hint: "a service is named by its URL or as HOST:PORT"}
	}
	return s.readLive()
}

// readLive reads how a service that runs is named.
func (s *side) readLive() (err error) {
	s.live = true
	s.service, err = cli.ParseService(s.source)
	return err
}

// cutArm splits RUN:ARM or RUN:ARM:WORKLOAD; ok is false of a URL, a process or a group.
func cutArm(source string) (run, cell string, ok bool) {
	run, cell, ok = strings.Cut(source, ":")
	port, _, _ := strings.Cut(cell, "/")
	other := slices.Contains([]string{"pid", "cgroup", "container"}, run) || strings.HasPrefix(run, "[") ||
		strings.Trim(port, "0123456789") == "" // host:port
	return run, cell, ok && !other
}

func (s *side) readFolder() error {
	var names []string
	for _, pattern := range []string{"*.pb.gz", "*.pprof", "*.prof"} {
		found, err := filepath.Glob(filepath.Join(s.source, pattern))
		if err != nil {
			return err
		}
		names = append(names, found...)
	}
	if len(names) == 0 {
		err := fmt.Errorf("%s: no profiles in it: no *.pb.gz, *.pprof or *.prof", s.source)
		if !runs.IsRun(s.source) {
			return err
		}
		return cli.Usage(fmt.Sprintf("it is a run: %s:ARM names the profiles of one of its arms; `tare compare A B` compares two runs", filepath.Clean(s.source)), err)
	}
	return s.readFiles(names)
}

func (s *side) readFiles(names []string) error {
	for _, name := range names {
		p, err := capture.ReadProfile(name)
		if err != nil {
			return err
		}
		s.warn(p.Warnings)
		requests, margin := p.Requests()
		s.add(p.Kind, p.Sampled(), cost.Window{Duration: p.Duration, Requests: requests, Margin: margin})
	}
	return nil
}

// readArm reads the captures of an arm of a run.
func (s *side) readArm(t *cli.Terminal, name, rest string) error {
	dir, err := runs.Find(name)
	if err != nil {
		return err
	}
	run, err := record.Open(dir)
	if err != nil {
		return err
	}
	arm, workload, _ := strings.Cut(rest, ":")
	cells, err := runs.FindCells(t, run, arm, workload)
	if err != nil {
		return err
	}
	if len(cells) > 1 {
		return cli.Usage(fmt.Sprintf("%s:%s:%s", name, arm, cells[0].Workload), fmt.Errorf("%s has profiles under %d workloads: say which", s.source, len(cells)))
	}
	p, err := cells[0].Profiles(run)
	if err != nil {
		return err
	}
	s.cpu, s.allocs = p.CPU, p.Allocs
	s.warn(p.Warnings)
	return nil
}
