package flame_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"strings"
	"testing"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/flame"
)

func stack(value float64, outermost ...string) cost.Stack {
	s := cost.Stack{Count: 1, Value: value}
	for i := len(outermost) - 1; i >= 0; i-- {
		s.Frames = append(s.Frames, cost.Frame{Func: outermost[i]})
	}
	return s
}

var some = []cost.Stack{
	stack(10, "runtime.goexit", "main.a", "main.b"),
	stack(20, "runtime.goexit", "main.a", "main.c"),
	stack(30, "runtime.goexit", "main.a"),
	stack(40, "runtime.mcall", "runtime.schedule"),
}

func TestLayout(t *testing.T) {
	var got []string
	for _, b := range flame.Layout(some, flame.Options{}) {
		got = append(got, fmt.Sprintf("%d %s %.2f+%.2f %s", b.Depth, b.Name, b.X, b.Width, b.Owner))
	}
	want := []string{
		"0 all 0.00+1.00 ",
		"1 runtime.goexit 0.00+0.60 main.a",
		"2 main.a 0.00+0.60 main.a",
		"3 main.b 0.00+0.10 main.a",
		"3 main.c 0.10+0.20 main.a",
		"1 runtime.mcall 0.60+0.40 scheduler",
		"2 runtime.schedule 0.60+0.40 scheduler",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("boxes:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestNested holds the rules that any graph keeps: a box lies within the one it
// stands on, and boxes of one depth do not overlap.
func TestNested(t *testing.T) {
	boxes := flame.Layout(some, flame.Options{})
	ends := map[int]float64{}
	var below []flame.Box
	for _, b := range boxes {
		below = append(below[:b.Depth], b)
		if b.X < ends[b.Depth]-1e-12 {
			t.Errorf("%s begins at %g, before the end %g of the box beside it", b.Name, b.X, ends[b.Depth])
		}
		ends[b.Depth] = b.X + b.Width
		if b.Depth > 0 {
			on := below[b.Depth-1]
			if b.X < on.X-1e-12 || b.X+b.Width > on.X+on.Width+1e-12 {
				t.Errorf("%s is not within %s", b.Name, on.Name)
			}
		}
	}
	if math.Abs(boxes[0].Value-100) > 1e-9 {
		t.Errorf("the root has %g, want 100", boxes[0].Value)
	}
}

func TestBounds(t *testing.T) {
	if got := flame.Layout(nil, flame.Options{}); got != nil {
		t.Errorf("boxes of nothing: %v, want none", got)
	}
	for _, b := range flame.Layout(some, flame.Options{Least: 0.15, Depth: 2}) {
		if b.Width < 0.15 || b.Depth > 2 {
			t.Errorf("box %+v, want none narrower than 0.15 or higher than 2", b)
		}
	}
}

// TestMost checks that a deep and wide profile is drawn within its bound, the
// narrowest boxes left out first.
func TestMost(t *testing.T) {
	var wide []cost.Stack
	for i := range 3000 {
		wide = append(wide, stack(float64(1+i%7), "main.main", fmt.Sprintf("main.f%d", i), "main.work"))
	}
	boxes := flame.Layout(wide, flame.Options{Least: 1e-9})
	if len(boxes) > 2500 || len(boxes) < 500 {
		t.Errorf("%d boxes, want some, at most 2500", len(boxes))
	}
	var b bytes.Buffer
	if err := flame.SVG(&b, boxes, "ns"); err != nil || b.Len() > 1<<20 {
		t.Errorf("drawn in %d bytes, %v, want at most a megabyte", b.Len(), err)
	}
}

// TestPlace checks that boxes can say and show more than their owner.
func TestPlace(t *testing.T) {
	boxes := flame.Place([]flame.Path{{Owner: "a", Names: []string{"f", "g"}, Value: 1}, {Owner: "b", Names: []string{"f"}, Value: 3}}, flame.Options{})
	if len(boxes) != 3 || boxes[1].Owner != "" || boxes[2].Owner != "a" || boxes[1].Value != 4 {
		t.Fatalf("boxes %+v", boxes)
	}
	boxes[2].Fill, boxes[2].Note = `red"`, " <changed>"
	var b bytes.Buffer
	if err := flame.SVG(&b, boxes, "ns"); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), `data-o="a"><title>g &lt;changed&gt;</title>`) || !strings.Contains(b.String(), `fill="red&#34;"`) {
		t.Errorf("no box as asked for in\n%s", b.String())
	}
}

// TestSVG checks that a drawing is well-formed, whatever functions are called.
func TestSVG(t *testing.T) {
	odd := append(some, stack(50, "main.<a>&\"'\x00\x1b", "x/y\xff.Z[...]"))
	var b bytes.Buffer
	if err := flame.SVG(&b, flame.Layout(odd, flame.Options{}), "ns"); err != nil {
		t.Fatal(err)
	}
	rects := 0
	for d := xml.NewDecoder(bytes.NewReader(b.Bytes())); ; {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("reading the drawing: %v\n%s", err, b.String())
		}
		if e, ok := tok.(xml.StartElement); ok && e.Name.Local == "rect" {
			rects++
		}
	}
	if want := len(flame.Layout(odd, flame.Options{})); rects != want {
		t.Errorf("%d boxes drawn, want %d", rects, want)
	}
	if !strings.Contains(b.String(), "<title>main.a, of main.a: 60 ns") {
		t.Errorf("no title that says name, owner and value in\n%s", b.String())
	}
}

// TestFrom checks that a middleware's own function is known for it though the
// handler is inside, and that nothing else shared is.
func TestFrom(t *testing.T) {
	const burn, show = "example.org/mw.(*burn).ServeHTTP", "example.org/shop.(*page).ServeHTTP"
	stacks := []cost.Stack{
		stack(60, "net/http.(*conn).serve", "net/http.serverHandler.ServeHTTP", burn),
		stack(30, "net/http.(*conn).serve", "net/http.serverHandler.ServeHTTP", burn, show),
		stack(10, "runtime.goexit", "main.tick"),
		stack(5, "runtime.goexit", "main.tock"),
	}
	for i := range stacks {
		for j := range stacks[i].Frames {
			f := &stacks[i].Frames[j]
			f.File = "/src/" + strings.ReplaceAll(f.Func, "/", ".") + ".go"
		}
	}
	boxes := flame.Layout(stacks, flame.Options{})
	got := map[string]string{}
	for _, b := range boxes {
		if b.Owner == "" {
			got[b.Name] = b.From
		}
	}
	want := map[string]string{"all": "", "net/http.(*conn).serve": "", "net/http.serverHandler.ServeHTTP": "", burn: "mw.(*burn).ServeHTTP", "runtime.goexit": ""}
	if !maps.Equal(got, want) {
		t.Errorf("what owners share begins %q, want %q", got, want)
	}
	var b bytes.Buffer
	if err := flame.SVG(&b, boxes, "ns"); err != nil {
		t.Fatal(err)
	}
	colour := flame.Colours([]string{"mw.(*burn).ServeHTTP"})["mw.(*burn).ServeHTTP"]
	at := strings.Index(b.String(), `data-f="mw.(*burn).ServeHTTP"><title>`+burn+", begins mw.(*burn).ServeHTTP: 90 ns")
	if at < 0 || !strings.Contains(strings.SplitN(b.String()[at:], "\n", 2)[0], colour) {
		t.Errorf("no box that begins the owner, of the colour %s, in\n%s", colour, b.String())
	}
}

// TestColours checks that a graph's owners have colours of their own, and keep
// them whatever else there is, but for who comes before them.
func TestColours(t *testing.T) {
	var owners []string
	for i := range 30 {
		owners = append(owners, fmt.Sprintf("mw.Middleware%d", i))
	}
	colours, seen, hues := flame.Colours(owners), map[string]string{}, map[string]bool{}
	for i, owner := range owners {
		c := colours[owner]
		if other, ok := seen[c]; ok || c == "" || c == flame.Shared {
			t.Errorf("%q has the colour %q, as %q", owner, c, other)
		}
		seen[c] = owner
		if hue, _, _ := strings.Cut(c, " "); i < 12 {
			if hues[hue] {
				t.Errorf("%q has a hue, %s, that one of the first 12 has", owner, hue)
			}
			hues[hue] = true
		}
	}
	for _, n := range []int{1, 10, 30} {
		for owner, c := range flame.Colours(owners[:n]) {
			if c != colours[owner] {
				t.Errorf("of %d owners %q has the colour %s, of 30 %s", n, owner, c, colours[owner])
			}
		}
	}
}

func Example() {
	boxes := flame.Layout([]cost.Stack{{Value: 5, Frames: []cost.Frame{{Func: "main.work"}, {Func: "main.main"}}}}, flame.Options{})
	for _, b := range boxes {
		fmt.Println(b.Depth, b.Name, b.Width)
	}
	// Output:
	// 0 all 1
	// 1 main.main 1
	// 2 main.work 1
}
