package compat_test

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/tarehq/tare/arms/rivals/compat"
)

var (
	update = flag.Bool("update", false, "rewrite docs/compat.md")
	times  = flag.Int("times", 3, "run each probe on each server so many `times`")
)

const page = "../../../docs/compat.md"

const intro = `# Which middleware goes with which server

Real middlewares and handlers of net/http, unchanged, on five servers. A
client asks over real connections and looks at the answers; the handlers look at
what they are given. The verdicts:

- **works**: nothing was found.
- **degrades**: the answers are right, but a promise that net/http makes is lost.
- **breaks**: a wrong answer or none, a hang, memory that changes under a
  handler, or the end of the server's process.

No verdict is written by hand. This page is what this command found, which runs
every probe three times on each server and keeps the worst:

    go -C arms/rivals test ./compat -update

Without ` + "`-update`" + ` the same command says whether the verdicts still hold; with
` + "`-race`" + ` it also fails where the race detector finds something on net/http or
serve. The probes are in [arms/rivals/compat](../arms/rivals/compat).

`

const seenHeading = `
## What was seen

How each server is set up, and what did not hold. Versions are those of
[arms/rivals/go.mod](../arms/rivals/go.mod).
`

// TestTable finds all verdicts and compares them with the page.
func TestTable(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts some hundred processes")
	}
	table := find(t, compat.Servers(), compat.Probes(), *times)
	var verdicts, notes bytes.Buffer
	if err := errors.Join(table.WriteVerdicts(&verdicts), table.WriteNotes(&notes)); err != nil {
		t.Fatal(err)
	}
	for _, r := range table.Rows {
		if o := r.Outcomes[0]; o.Verdict != compat.Works {
			t.Errorf("%s: got %+v on net/http, which makes the promises: the probe is wrong", r.Probe.Name, o)
		}
	}
	if *update && !t.Failed() {
		if err := os.WriteFile(page, []byte(intro+verdicts.String()+seenHeading+notes.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if rows := strings.Count(string(got), "\n| "); rows != len(table.Rows)+1 {
		t.Errorf("%s has %d rows, want %d", page, rows, len(table.Rows)+1)
	}
	for line := range strings.Lines(verdicts.String()) {
		if !strings.Contains(string(got), line) {
			t.Errorf("%s does not have the row\n%sfind out why, or run go test ./compat -update", page, line)
		}
	}
	if t.Failed() {
		t.Log(notes.String())
	}
}

// find runs every probe on every server, a few at a time: they wait more than
// they work.
func find(t *testing.T, servers []compat.Server, probes []compat.Probe, times int) compat.Table {
	t.Helper()
	table := compat.Table{Servers: servers, Rows: make([]compat.Row, len(probes))}
	slots := make(chan struct{}, 4)
	var all sync.WaitGroup
	for i, p := range probes {
		table.Rows[i] = compat.Row{Probe: p, Outcomes: make([]compat.Outcome, len(servers))}
		for j, s := range servers {
			slots <- struct{}{}
			all.Go(func() {
				defer func() { <-slots }()
				o, err := pair{Probe: p.Name, Server: s.Name}.run(t.Context(), times)
				if err != nil {
					t.Errorf("%s on %s: %v", p.Name, s.Name, err)
				}
				table.Rows[i].Outcomes[j] = o
			})
		}
	}
	all.Wait()
	return table
}
