package page_test

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/diff"
	"github.com/tarehq/tare/cost/page"
)

const hostile = "main.<script>alert(1)</script>.func1"

// captures are five of a program in which one middleware is seen so often.
func captures(n float64) []diff.Capture {
	var all []diff.Capture
	for i := range 5 {
		at := func(count float64, innermost ...string) cost.Stack {
			s := cost.Stack{Count: count, Value: count * 1e6}
			for _, f := range innermost {
				s.Frames = append(s.Frames, cost.Frame{Func: f, File: "/src/app/<b>.go", Decl: 7})
			}
			return s
		}
		all = append(all, diff.Capture{Window: cost.Window{Requests: 1000}, Stacks: []cost.Stack{
			at(n+float64(i), "main.<i>work", hostile, "net/http.HandlerFunc.ServeHTTP", "net/http.(*conn).serve"),
			at(300-float64(i), "net/http.(*conn).readRequest", "net/http.(*conn).serve"),
		}})
	}
	return all
}

func writeDiff(t *testing.T, a, b float64) string {
	t.Helper()
	r, err := diff.Compare(captures(a), captures(b), diff.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	err = page.WriteDiff(&out, &page.Diff{A: "<s>a", B: `b"`, CPU: r, Bytes: r, Warnings: []string{"a <u>warning"}})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// coloured matches boxes that are told to differ.
var coloured = regexp.MustCompile(`fill="hsl\((10|215) 85% \d+%\)"`)

func TestDiffColours(t *testing.T) {
	for _, tc := range []struct {
		name string
		a, b float64
		hue  string // of what is coloured; "" for nothing
	}{
		{"the same", 200, 200, ""},
		{"more", 200, 400, "10"},
		{"less", 400, 200, "215"},
	} {
		got := coloured.FindAllStringSubmatch(writeDiff(t, tc.a, tc.b), -1)
		want := 0
		if tc.hue != "" {
			want = 2 * 3 // in either graph the owner, its function, and what that calls
		}
		if len(got) != want {
			t.Errorf("%s: %d boxes are coloured, want %d", tc.name, len(got), want)
		}
		for _, m := range got {
			if m[1] != tc.hue {
				t.Errorf("%s: a box has the hue %s, want %s", tc.name, m[1], tc.hue)
			}
		}
	}
}

func TestDiffEscapedAndOffline(t *testing.T) {
	got := writeDiff(t, 100, 400)
	for _, bad := range []string{"<script>alert", "<s>", "<u>", "<i>work", "<b>.go"} {
		if strings.Contains(got, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	for _, m := range regexp.MustCompile(`(?:src|href)="([^"]*)"|url\(([^)]*)\)|@import`).FindAllString(got, -1) {
		if m != `href="data:,"` {
			t.Errorf("the page refers to %s", m)
		}
	}
}

type broken struct{}

var errBroken = errors.New("broken")

func (broken) Write([]byte) (int, error) { return 0, errBroken }

func TestDiffErrorsAreReturned(t *testing.T) {
	if err := page.WriteDiff(broken{}, &page.Diff{}); !errors.Is(err, errBroken) {
		t.Errorf("got %v, want the writer's error", err)
	}
}

func ExampleWriteDiff() {
	r, err := diff.Compare(captures(200), captures(400), diff.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	var out bytes.Buffer
	err = page.WriteDiff(&out, &page.Diff{A: "before", B: "after", CPU: r})
	fmt.Println(strings.Contains(out.String(), "<title>before and after: what differs</title>"), err)
	// Output: true <nil>
}
