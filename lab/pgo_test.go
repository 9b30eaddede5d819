package lab_test

import (
	"bytes"
	"debug/buildinfo"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"testing"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/pprof"
	"github.com/tarehq/tare/lab"
	"github.com/tarehq/tare/lab/arm"
	"github.com/tarehq/tare/lab/study"
)

// slowStart is a service that takes a while to start, and whose only answers have no content.
// It imports little: with a profile all of that is compiled anew.
const slowStart = `package main

import (
	"bufio"
	"io"
	"net"
	"os"
	"time"
)

var sum int

//go:noinline
func work(n int) {
	for i := range n {
		sum += i * i
	}
}

func main() {
	time.Sleep(1500 * time.Millisecond)
	l, err := net.Listen("tcp", os.Getenv("TARE_ADDR"))
	if err != nil {
		panic(err)
	}
	for {
		c, err := l.Accept()
		if err != nil {
			panic(err)
		}
		go serve(c)
	}
}

func serve(c net.Conn) {
	defer c.Close()
	for r := bufio.NewReader(c); ; {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		if line == "\r\n" { // the request's end
			work(100_000)
			io.WriteString(c, "HTTP/1.1 204 No Content\r\n\r\n")
		}
	}
}
`

// The profile for a build with pgo is of the load, however long the program takes to start
// and whatever a correct answer is. It is kept, and the program is built with it.
func TestPGO(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: takes a CPU profile of ten seconds")
	}
	t.Parallel() // it waits
	dir, cache := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{"go.mod": "module example.com/slow\n\ngo 1.26\n", "main.go": slowStart} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s := small(t)
	s.Arms = []study.Arm{{Name: "a", Go: dir}, {Name: "b", Go: dir, With: []string{"pgo"}}}
	s.Workloads = s.Workloads[:1]
	s.Workloads[0].Connections, s.Workloads[0].Targets[0].Verify = 1, study.Verify{}
	b := &arm.Builder{Cache: cache}
	all, err := lab.Answers(t.Context(), lab.Options{Study: s, Builder: b})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 2 || all[0].Status != http.StatusNoContent || all[1].Status != http.StatusNoContent {
		t.Errorf("got %+v, want status 204 of both", all)
	}
	kept, err := filepath.Glob(filepath.Join(cache, "pgo", "*"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("kept are %q, %v, want one profile", kept, err)
	}
	raw, err := os.ReadFile(kept[0])
	if err != nil {
		t.Fatal(err)
	}
	profile, err := pprof.Read(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	inWork := func(s cost.Stack) bool {
		return slices.ContainsFunc(s.Frames, func(f cost.Frame) bool { return f.Func == "main.work" })
	}
	if !slices.ContainsFunc(profile.Stacks, inWork) {
		t.Errorf("%d stacks, and none in what the load asks for", len(profile.Stacks))
	}
	p, err := b.Build(t.Context(), s.Arms[1])
	if err != nil {
		t.Fatal(err)
	}
	info, err := buildinfo.ReadFile(p.Path)
	if err != nil {
		t.Fatal(err)
	}
	with := debug.BuildSetting{Key: "-pgo", Value: filepath.Base(kept[0])}
	if !slices.Contains(info.Settings, with) {
		t.Errorf("built with %v, want %v", info.Settings, with)
	}
}

// A profile is kept for what was asked, whatever is known of the answers.
func TestLoadOf(t *testing.T) {
	one := lab.LoadOf(small(t))
	for name, change := range map[string]func(w *study.Workload){
		"path":        func(w *study.Workload) { w.Targets[0].Path = "/other" },
		"header":      func(w *study.Workload) { w.Targets[0].Header = map[string]string{"Accept": "text/plain"} },
		"body":        func(w *study.Workload) { w.Targets[0].Body = "x" },
		"connections": func(w *study.Workload) { w.Connections++ },
		"":            func(w *study.Workload) { w.Targets[0].Verify, w.Schedule = study.Verify{}, "constant" },
	} {
		s := small(t)
		change(&s.Workloads[0])
		if other := lab.LoadOf(s); (other != one) != (name != "") {
			t.Errorf("with another %q: got %q beside %q", name, other, one)
		}
	}
}
