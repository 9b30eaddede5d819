package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"strconv"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cmd/tare/internal/runs"
	"github.com/tarehq/tare/cost/capture"
	"github.com/tarehq/tare/cost/doctor"
	"github.com/tarehq/tare/cost/doctor/proc"
	"github.com/tarehq/tare/cost/pprof"
)

// doctorCmd says what ails a service.
type doctorCmd struct {
	What   string        `arg:"" optional:"" name:"url|pid|run" help:"A service with net/http/pprof, a process of this machine, or a run whose profiles were kept."`
	For    time.Duration `default:"10s" help:"How long to profile, in whole seconds; an execution trace of half that, at most 5 s, comes on top."`
	Load   string        `help:"URL to load meanwhile, so that prices come out per request." placeholder:"URL"`
	Header []string      `short:"H" sep:"none" help:"With --load: a header field to send; repeatable." placeholder:"NAME: VALUE"`
	Conns  int           `name:"connections" short:"c" default:"16" help:"With --load: connections kept busy."`
	Source string        `help:"Folder of the program's source: the compiler is asked which values escape to the heap." placeholder:"DIR"`
	Probe  bool          `help:"Send half a header also to another machine, to see when the server gives up. On this machine it is always done."`
	From   string        `help:"Examine evidence that was saved." placeholder:"FILE"`
	Arm    string        `help:"Of a run: the arm to examine alone." placeholder:"NAME"`
	Save   string        `help:"Save the evidence, to examine it again or elsewhere." placeholder:"FILE"`
	JSON   bool          `name:"json" help:"Print JSON."`
}

// Help says what is looked at.
func (c *doctorCmd) Help() string {
	return `Examples:

  tare doctor --load http://localhost:8080/users localhost:6060
  tare doctor 4711                        a process, its profiles found by its ports
  tare doctor --source . localhost:6060   with the compiler's word on escapes
  tare doctor --from evidence.gz          evidence saved by --save

Every finding has a price, measured on this service, the threshold that it
crossed, a remedy, and how to see whether it helped. What could not be looked at
is named with the reason: it is not taken for health.

Exit status: 0 nothing was found, 3 something was, 4 inconclusive: nothing was
found, but something is perhaps beyond its threshold, or there were too few
requests to tell, or no rule could.`
}

// Run gathers evidence, examines it and shows what was found.
func (c *doctorCmd) Run(ctx context.Context, t *cli.Terminal) error {
	if err := cmp.Or(c.check(), t.RefuseFlags(c.From != "", "for saved evidence", "for"), t.RefuseFlags(c.Load == "", "without --load", "connections")); err != nil {
		return err
	}
	all, err := c.evidence(ctx, t)
	if err != nil {
		return err
	}
	unsaved := cli.WriteFile(c.Save, all[0].Save) // the diagnosis is shown all the same
	var told []*doctor.Diagnosis
	var found, unclear bool
	for _, e := range all {
		d := doctor.Examine(e)
		found = found || len(d.Findings) > 0
		unclear = unclear || d.Inconclusive() || perhaps(d)
		told = append(told, d)
	}
	if c.JSON {
		err = t.JSON(told)
	} else {
		err = printDiagnoses(t, told)
	}
	switch err := errors.Join(unsaved, err); {
	case err != nil:
		return err
	case found:
		return &cli.Failure{Status: cli.ExitThreshold}
	case unclear:
		return &cli.Failure{Status: cli.ExitInconclusive}
	}
	return nil
}

// asks reports whether something is to be done beside looking, which takes a
// service that runs.
func (c *doctorCmd) asks() bool { return c.Load != "" || c.Source != "" || c.Probe }

func (c *doctorCmd) check() error {
	const remedy = "tare doctor URL, tare doctor PID, or tare doctor --from FILE"
	switch {
	case c.What == "" && c.From == "":
		return cli.Usage(remedy, errors.New("nothing to look at"))
	case c.What != "" && c.From != "":
		return cli.Usage(remedy, errors.New("a service and saved evidence exclude one another"))
	case c.From != "" && (c.asks() || c.Arm != ""):
		return cli.Usage("give them when the evidence is saved: --save FILE", errors.New("--load, --source, --probe and --arm do nothing for saved evidence"))
	case c.For < time.Second || c.For > time.Hour || c.For%time.Second != 0:
		return cli.Usage("", fmt.Errorf("--for %s: whole seconds, at least 1s, at most 1h", c.For))
	case c.Conns < 1:
		return cli.Usage("", errors.New("--connections is at least 1"))
	case len(c.Header) > 0 && c.Load == "":
		return cli.Usage("name the URL to load: --load URL", errors.New("--header without --load"))
	}
	if info, err := os.Stat(c.Source); c.Source != "" && (err != nil || !info.IsDir()) {
		return cli.Usage("name the folder of the service's module", fmt.Errorf("--source %s is no folder", c.Source))
	}
	if _, err := cli.HeaderFields("--header", c.Header); err != nil {
		return err
	}
	return cli.CheckOutputs([]cli.Output{{Flag: "--save", Path: c.Save}})
}

// evidence is what was saved, what a run keeps of each of its arms, or what is
// gathered now.
func (c *doctorCmd) evidence(ctx context.Context, t *cli.Terminal) ([]*doctor.Evidence, error) {
	if c.From != "" {
		e, err := readEvidence(c.From)
		return []*doctor.Evidence{e}, err
	}
	if dir, err := runs.Find(c.What); err == nil {
		if err := t.RefuseFlags(true, "for a run", "load", "save", "source", "probe", "for"); err != nil {
			return nil, err
		}
		return c.fromRun(t, dir)
	}
	if c.Arm != "" {
		return nil, cli.Usage("`tare list` shows the runs kept", fmt.Errorf("--arm is of a run, and %q is none", c.What))
	}
	p, err := c.patient(ctx)
	if err != nil {
		return nil, err
	}
	e, err := c.gather(ctx, t, p)
	return []*doctor.Evidence{e}, err
}

func readEvidence(name string) (*doctor.Evidence, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	e, err := doctor.Load(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return e, nil
}

// patient is what the doctor looks at.
type patient struct {
	name    string
	service *pprof.Service // nil if it shows no profiles
	pid     int            // 0 if it is not of this machine, or not to be found
	reasons map[doctor.Part]string
}

// patient finds out what was named: a process, or a service.
func (c *doctorCmd) patient(ctx context.Context) (*patient, error) {
	p := &patient{name: c.What, reasons: map[doctor.Part]string{}}
	if pid, err := strconv.Atoi(c.What); err == nil {
		return p, p.process(ctx, pid)
	}
	s, err := pprof.Find(c.What)
	if err != nil {
		return nil, cli.Usage("such as localhost:6060, or a process's number", err)
	}
	p.service, p.name = s, s.String()
	port, local := here(s.String())
	if !local {
		p.reasons[doctor.ProcessFacts] = "the service is on another machine"
		return p, nil
	}
	if p.pid, err = proc.Listener(port); err != nil {
		p.reasons[doctor.ProcessFacts] = err.Error()
		return p, nil
	}
	brief, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if seen, err := s.Goroutines(brief); err == nil && !capture.RunsProgram(p.pid, seen) {
		p.reasons[doctor.ProcessFacts] = fmt.Sprintf("process %d listens there, but forwards to the service: it is not %s", p.pid, seen.Program())
		p.pid = 0
	}
	return p, nil
}

const noProfiles = "the process shows no net/http/pprof on a port of this machine"

// process looks for profiles on the ports on which a process listens.
func (p *patient) process(ctx context.Context, pid int) error {
	facts, err := proc.Read(pid)
	if err != nil {
		return err
	}
	if err := facts.Foreign(); err != nil {
		return &cli.Failure{Status: cli.ExitFailed, Err: err, Hint: "name the process of the service itself, not of what started it"}
	}
	p.pid, p.name = pid, fmt.Sprintf("process %d", pid)
	ports, err := proc.Listening(pid)
	if errors.Is(err, fs.ErrPermission) {
		return &cli.Failure{Status: cli.ExitFailed, Err: err, Hint: "another user's process is seen by root alone: sudo, or name the URL of its profiles"}
	}
	if err != nil {
		return err
	}
	why := noProfiles
	if facts.OwnNetwork { // here, its ports are other services'
		why = ownNetwork(pid, "doctor")
	} else if p.service, err = showing(ctx, ports); err != nil {
		return err
	}
	if p.service != nil {
		p.name += " at " + p.service.String()
		return nil
	}
	for _, part := range []doctor.Part{doctor.CPUProfile, doctor.AllocationProfile, doctor.LiveHeap, doctor.ExecutionTrace, doctor.GoroutineCounts, doctor.MemoryStatistics} {
		p.reasons[part] = why
	}
	return nil
}

// here returns the port of a URL, and whether it is of this machine.
func here(raw string) (port int, local bool) {
	u, err := url.Parse(raw)
	if err != nil {
		return 0, false
	}
	name := u.Port()
	if name == "" {
		name = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	port, err = strconv.Atoi(name)
	if err != nil {
		return 0, false
	}
	ip := net.ParseIP(u.Hostname())
	return port, u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}
