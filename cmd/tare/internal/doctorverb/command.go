// Package doctorverb diagnoses a running service: the verb doctor.
package doctorverb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cmd/tare/internal/runs"
	"github.com/tarehq/tare/cost/capture"
	"github.com/tarehq/tare/cost/doctor"
	"github.com/tarehq/tare/cost/doctor/proc"
	"github.com/tarehq/tare/doc"
)

// Command says what ails a service.
type Command struct {
	What        string `arg:"" optional:"" name:"url|pid|run" help:"A service with net/http/pprof, a process ID, or a run with profiles."`
	cli.Process `group:"Service:"`
	From        string `group:"Service:" help:"Examine saved evidence instead." placeholder:"FILE"`
	Arm         string `group:"Service:" help:"With a run: examine only this arm." placeholder:"NAME"`
	cli.For
	cli.Load `group:"Load:"`
	Source   string `help:"Folder of the program's source, to ask the compiler which values escape to the heap." placeholder:"DIR"`
	Probe    bool   `help:"Test header timeouts with half a header on other machines too, not only on this one."`
	Save     string `group:"Output:" help:"Save the evidence, to examine it later or elsewhere." placeholder:"FILE"`
	JSON     bool   `group:"Output:" name:"json" help:"Print JSON."`

	ended bool // what was looked at ended meanwhile
}

// Help says what is looked at.
func (c *Command) Help() string {
	return `Examples:

  tare doctor --load http://localhost:8080/users localhost:6060
  tare doctor 4711                        a process, its profiles found by its ports
  tare doctor --source . localhost:6060   also ask the compiler about escapes
  tare doctor --from evidence.gz          evidence saved by --save

After the profile, doctor records an execution trace of half the time, at most 5 s.
Every finding has a price that was measured on this service. It names the threshold that
was crossed, a remedy, and how to verify it. doctor also lists what it could not examine,
with the reason. That is not a sign of health.

With --since 1h DIR it shows what became more expensive in the last hour, as tare watch
does, by the profiles that tare watch --keep DIR kept.

Exit status: 0 no findings, 3 findings, 4 inconclusive, 6 the service ended meanwhile.
Inconclusive means no findings, but a value may be beyond its threshold, or there were
too few requests.`
}

// Run gathers evidence, examines it and shows what was found.
func (c *Command) Run(ctx context.Context, t *cli.Terminal) error {
	if err := c.check(t); err != nil {
		return err
	}
	all, err := c.evidence(ctx, t)
	if err != nil {
		return err
	}
	unsaved := cli.WriteFile(c.Save, all[0].Save) // the diagnosis is shown all the same
	var told []*doctor.Diagnosis
	var p doc.Page
	var found, unclear bool
	for _, e := range all {
		d := doctor.Examine(e)
		found = found || len(d.Findings) > 0
		unclear = unclear || d.Inconclusive() || perhaps(d)
		told = append(told, d)
		p.Add(diagnosisBlocks(d)...)
	}
	err = t.Show(ctx, cli.Result{JSON: told, Page: p}, c.JSON, unsaved)
	switch {
	case err != nil:
		return err
	case c.ended:
		return &cli.Failure{Status: cli.ExitEnded} // a warning says so
	case found:
		return &cli.Failure{Status: cli.ExitThreshold}
	case unclear:
		return &cli.Failure{Status: cli.ExitInconclusive}
	}
	return nil
}

// asks reports whether something is to be done beside looking, which takes a
// service that runs.
func (c *Command) asks() bool { return c.Load.URL != "" || c.Source != "" || c.Probe }

const remedy = "tare doctor URL, tare doctor PID, or tare doctor --from FILE"

func (c *Command) check(t *cli.Terminal) error {
	switch {
	case c.From != "" && (c.What != "" || c.Named()):
		return cli.Usage(remedy, errors.New("a service and saved evidence exclude one another"))
	case c.From != "" && (c.asks() || c.Arm != ""):
		return cli.Usage("give them when the evidence is saved: --save FILE", errors.New("--load, --source, --probe and --arm do nothing for saved evidence"))
	}
	if info, err := os.Stat(c.Source); c.Source != "" && (err != nil || !info.IsDir()) {
		return cli.Usage("name the folder of the service's module", fmt.Errorf("--source %s is not a folder", c.Source))
	}
	return cmp.Or(c.For.Check(time.Hour), c.Load.Check(t),
		t.RefuseFlags(c.From != "", "for saved evidence", "for"),
		cli.CheckOutputs([]cli.Output{{Flag: "--save", Path: c.Save}}))
}

// evidence is what was saved, what a run keeps of each of its arms, or what is
// gathered now.
func (c *Command) evidence(ctx context.Context, t *cli.Terminal) ([]*doctor.Evidence, error) {
	if c.From != "" {
		e, err := readEvidence(c.From)
		return []*doctor.Evidence{e}, err
	}
	if c.What != "" && !c.Named() {
		if dir, err := runs.Find(c.What); err == nil {
			if err := t.RefuseFlags(true, "for a run", "load", "save", "source", "probe", "for"); err != nil {
				return nil, err
			}
			return c.fromRun(t, dir)
		}
	}
	s, err := c.Process.Service(c.What, remedy)
	if err != nil {
		return nil, err
	}
	if c.Arm != "" {
		return nil, cli.Usage("`tare list` shows the runs kept", fmt.Errorf("--arm is of a run, and %q is none", c.What))
	}
	p, err := findPatient(ctx, s)
	if err != nil {
		return nil, cli.ExplainCapture(err)
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
	target  *capture.Target
	pid     int // 0 if it is not of this machine, or not to be found
	reasons map[doctor.Part]string
}

// findPatient finds what was named: a service, or a process.
func findPatient(ctx context.Context, s capture.Service) (p *patient, err error) {
	p = &patient{reasons: map[doctor.Part]string{}}
	if s.URL != "" {
		if p.target, err = s.Find(ctx, capture.Own); err != nil {
			return nil, err
		}
		p.name = p.target.Name
		if p.pid, err = s.Process(ctx); err != nil {
			p.pid, p.reasons[doctor.ProcessFacts] = 0, err.Error()
		}
		return p, nil
	}
	if p.pid, err = s.Process(ctx); err != nil {
		return nil, err
	}
	return p, p.findProcess(ctx)
}

const noProfiles = "the process shows no net/http/pprof on a port of this machine"

// findProcess looks for profiles on the ports on which a process listens.
func (p *patient) findProcess(ctx context.Context) error {
	facts, err := proc.Read(p.pid)
	if err != nil {
		return err
	}
	if err := facts.Foreign(); err != nil {
		return &cli.Failure{Status: cli.ExitFailed, Err: err, Hint: "name the process of the service itself, not of what started it"}
	}
	s := capture.Service{PID: p.pid}
	p.name = s.String()
	p.target, err = s.Find(ctx, capture.Own)
	if err == nil {
		p.name += " at " + p.target.Profiles.String()
		return nil
	}
	why := noProfiles
	if network := (*capture.NetworkError)(nil); errors.As(err, &network) {
		why = cli.NetworkHint(p.pid)
	} else if !errors.Is(err, capture.ErrNoProfiles) {
		return err
	}
	for _, part := range []doctor.Part{doctor.CPUProfile, doctor.AllocationProfile, doctor.LiveHeap, doctor.ExecutionTrace, doctor.GoroutineCounts, doctor.MemoryStatistics} {
		p.reasons[part] = why
	}
	p.target, err = s.Find(ctx, capture.Outside)
	return err
}
