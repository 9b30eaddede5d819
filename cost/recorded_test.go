package cost_test

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tarehq/tare/cost"
)

var update = flag.Bool("update", false, "write what is got as what is wanted")

// recorded reads stacks as they were seen: a line a function, its name, file and
// first line; an empty line; and a line a stack, its count and the numbers of its
// functions from the outermost.
func recorded(t *testing.T, name string) []cost.Stack {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var functions []cost.Frame
	var stacks []cost.Stack
	lines := bufio.NewScanner(f)
	for lines.Scan() && lines.Text() != "" {
		fn, at, _ := strings.Cut(lines.Text(), " ")
		colon := strings.LastIndexByte(at, ':')
		frame := cost.Frame{Func: fn, File: at[:colon]}
		fmt.Sscan(at[colon+1:], &frame.Decl)
		functions = append(functions, frame)
	}
	for lines.Scan() {
		var s cost.Stack
		count, rest, _ := strings.Cut(lines.Text(), " ")
		fmt.Sscan(count, &s.Count)
		s.Value = s.Count
		for _, n := range slices.Backward(strings.Fields(rest)) {
			var i int
			fmt.Sscan(n, &i)
			s.Frames = append(s.Frames, functions[i])
		}
		stacks = append(stacks, s)
	}
	if err := lines.Err(); err != nil || len(stacks) == 0 {
		t.Fatalf("%s: %d stacks, %v", name, len(stacks), err)
	}
	return stacks
}

// TestRecorded charges stacks that profiles of arms/injected and its kin had, and
// those named used-, of services with middlewares for all routes, some of them
// the framework's, and methods as handlers: the commonest four of each owner. Beside the whole table, which a person has
// looked at, it checks what holds for all: what the injected work did is charged
// to the middleware that is written for it.
func TestRecorded(t *testing.T) {
	files, err := filepath.Glob("testdata/stacks/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no stacks: %v", err)
	}
	for _, file := range files {
		stacks := recorded(t, file)
		rules := cost.Learn(stacks)
		table := cost.Table{Rules: rules}
		for i := range stacks {
			table.Add(&stacks[i])
			checkInjected(t, file, rules, &stacks[i])
		}
		var got strings.Builder
		for _, r := range table.Rows() {
			fmt.Fprintf(&got, "%-10s %s %s self %g total %g\n", r.Owner.Kind, r.Owner.Name, r.Owner.Where(), r.Self.Count, r.Total.Count)
		}
		golden := strings.TrimSuffix(file, ".txt") + ".want"
		if *update {
			if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if got.String() != string(want) {
			t.Errorf("%s: got\n%swant\n%s", file, got.String(), want)
		}
	}
}

// checkInjected holds a stack on which injected work is done against its owner.
func checkInjected(t *testing.T, file string, rules *cost.Rules, s *cost.Stack) {
	t.Helper()
	for _, f := range s.Frames {
		kind, ok := strings.CutPrefix(f.Func, "github.com/tarehq/tare/arms/injected/work.(*")
		if !ok || !strings.HasSuffix(kind, ").Do") {
			continue
		}
		want := strings.ToLower(strings.TrimSuffix(kind, ").Do"))
		owner, _ := rules.Charge(s.Frames)
		if _, name, _ := strings.Cut(owner.Name, "."); strings.ToLower(name) != want {
			t.Errorf("%s: the work of %s is charged to %s", file, f.Func, owner.Name)
		}
	}
}
