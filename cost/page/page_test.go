package page_test

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/page"
)

func bill() (*cost.Bill, []cost.Stack) {
	at := func(value float64, innermost ...string) cost.Stack {
		s := cost.Stack{Count: value / 100, Value: value}
		for _, f := range innermost {
			s.Frames = append(s.Frames, cost.Frame{Func: f, File: "/src/app/app.go", Decl: 7})
		}
		return s
	}
	cpu := []cost.Stack{
		at(5000, "main.<script>alert(1)</script>.func1", "net/http.HandlerFunc.ServeHTTP", "net/http.(*conn).serve"),
		at(3000, "internal/runtime/syscall.Syscall6", "net/http.(*response).finishRequest", "net/http.(*conn).serve"),
		at(2000, "runtime.gcBgMarkWorker"),
	}
	b := cost.NewBill(cpu, nil, cost.Window{Requests: 10})
	b.Source = `http://host/<b>"`
	b.Warnings = []string{"a <i>warning</i>"}
	return b, cpu
}

func write(t *testing.T) string {
	t.Helper()
	b, cpu := bill()
	var out bytes.Buffer
	if err := page.Write(&out, b, cpu); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestEscaped checks that nothing that a profile says becomes a tag.
func TestEscaped(t *testing.T) {
	got := write(t)
	for _, bad := range []string{"<script>alert", "<b>\"", "<i>warning"} {
		if strings.Contains(got, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
}

// TestRequests has the page say how well requests were counted, unless they were one
// by one.
func TestRequests(t *testing.T) {
	for _, tt := range []struct {
		margin float64
		want   string
	}{{0, "and 10 requests."}, {2, "and 10 ± 20.0 % requests."}} {
		_, cpu := bill()
		var out bytes.Buffer
		if err := page.Write(&out, cost.NewBill(cpu, nil, cost.Window{Duration: time.Second, Requests: 10, Margin: tt.margin}), cpu); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), tt.want) {
			t.Errorf("the page lacks %q", tt.want)
		}
	}
}

// TestOffline checks that the page asks nothing of the network.
func TestOffline(t *testing.T) {
	refs := regexp.MustCompile(`(?:src|href)="([^"]*)"|url\(([^)]*)\)|@import`)
	for _, m := range refs.FindAllString(write(t), -1) {
		if m != `href="data:,"` {
			t.Errorf("the page refers to %s", m)
		}
	}
}

// TestColours checks that an owner's box has the colour of its dot in the table.
func TestColours(t *testing.T) {
	got := write(t)
	dots := regexp.MustCompile(`data-owner="([^"]*)"[^>]*style="background:([^"]*)"`).FindAllStringSubmatch(got, -1)
	if len(dots) != 3 {
		t.Fatalf("%d dots, want 3", len(dots))
	}
	for _, dot := range dots {
		box := regexp.MustCompile(`data-o="` + regexp.QuoteMeta(dot[1]) + `"><title>[^<]*</title><rect [^>]*fill="([^"]*)"`).FindStringSubmatch(got)
		if box == nil || box[1] != dot[2] {
			t.Errorf("the dot of %s is %s, its box %q", dot[1], dot[2], box)
		}
	}
}

// TestRest says what those spent together that have no row.
func TestRest(t *testing.T) {
	for rest, want := range map[float64]string{0: "1 more spent no CPU that was sampled: <code>tare cost --all</code>", 3: "1 more spent 3 ns together: <code>tare cost --all</code>"} {
		b := &cost.Bill{CPU: 10_000, Items: []cost.Item{{Owner: "a", Self: 10_000}, {Owner: "b", Self: rest}}}
		var out bytes.Buffer
		if err := page.Write(&out, b, nil); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), want) {
			t.Errorf("with %g ns: no %q", rest, want)
		}
	}
}

// TestClock has columns of what the clock saw, if it saw anything, and cells in
// them for every owner.
func TestClock(t *testing.T) {
	b, cpu := bill()
	b.Items[0].Wall = &cost.WallShare{Calls: 2, Self: 20_000, Total: 99_000, P50: 19_000, P99: 43_000}
	var out bytes.Buffer
	if err := page.Write(&out, b, cpu); err != nil {
		t.Fatal(err)
	}
	const heads, cells = "<th>calls</th><th>mean</th><th>p50</th><th>p99</th>", "<td>2</td><td>20.0 µs</td><td>19.0 µs</td><td>43.0 µs</td>"
	for _, want := range []string{heads, cells, "Calls are those per request"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the page has no %q", want)
		}
	}
	columns := strings.Count(out.String(), "<th") - strings.Count(out.String(), "<thead")
	for _, row := range strings.Split(out.String(), "<tr>")[2:] {
		if got := strings.Count(row, "<td"); got != columns {
			t.Errorf("a row has %d cells, want %d: %.80s", got, columns, row)
		}
	}
	if strings.Contains(write(t), "<th>p50</th>") {
		t.Error("columns of the clock, though nobody looked at it")
	}
}

// TestWithoutCPU writes a bill of allocations alone: there is nothing to draw.
func TestWithoutCPU(t *testing.T) {
	b := cost.NewBill(nil, []cost.Stack{{Count: 1, Value: 10, Frames: []cost.Frame{{Func: "main.main"}}}}, cost.Window{})
	var out bytes.Buffer
	if err := page.Write(&out, b, nil); err != nil {
		t.Fatal(err)
	}
	if s := out.String(); strings.Contains(s, "<svg") || !strings.Contains(s, "main.main") {
		t.Error("want the owner, and no graph")
	}
}

func TestErrorsOfWritingAreReturned(t *testing.T) {
	b, cpu := bill()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("no /dev/full here")
	}
	defer full.Close()
	if err := page.Write(full, b, cpu); err == nil {
		t.Error("writing to a full disk succeeded, want its error")
	}
}

func Example() {
	b := cost.NewBill(nil, nil, cost.Window{})
	b.Source = "a service that did nothing"
	var out bytes.Buffer
	err := page.Write(&out, b, nil)
	fmt.Println(strings.Contains(out.String(), "<title>Cost of a service that did nothing</title>"), err)
	// Output: true <nil>
}
