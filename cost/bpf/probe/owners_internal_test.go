package probe

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tarehq/tare/cost"
)

var (
	serveFrame = cost.Frame{Func: "net/http.serverHandler.ServeHTTP", File: "/go/net/http/server.go", Decl: 3302}
	funcFrame  = cost.Frame{Func: "net/http.HandlerFunc.ServeHTTP", File: "/go/net/http/server.go", Decl: 2285}
	authFrame  = cost.Frame{Func: "main.main.Auth.func1", File: "/src/shop/mw.go", Line: 13, Decl: 10}
	logFrame   = cost.Frame{Func: "example.com/web.(*logger).ServeHTTP", File: "/src/shop/web/log.go", Line: 31, Decl: 30}
	helloFrame = cost.Frame{Func: "main.hello", File: "/src/shop/main.go", Line: 51, Decl: 50}
)

// at is a frame that has a function of its own.
func at(push uint64, f cost.Frame) place {
	return place{[]cost.Frame{f}, symbol{f.Func, push}, nil}
}

// request is a stack on which hello is inside Auth, and that is inside
// logger.
func request() []place {
	return []place{
		at(0x10, cost.Frame{Func: "net/http.(*response).Write", File: "/go/net/http/server.go", Decl: 1600}),
		at(0x20, helloFrame), at(0x30, funcFrame), at(0x40, authFrame), at(0x30, funcFrame), at(0x50, logFrame), at(0x60, serveFrame),
	}
}

func TestMeet(t *testing.T) {
	inlined := []place{{[]cost.Frame{helloFrame, funcFrame}, symbol{funcFrame.Func, 0x30}, nil}, at(0x40, authFrame), at(0x60, serveFrame)}
	bare := []place{at(0, helloFrame), at(0x30, funcFrame), at(0x60, serveFrame)}
	direct := []place{
		at(0, cost.Frame{Func: "net/http.(*response).WriteHeader"}),
		at(0, cost.Frame{Func: "github.com/labstack/echo/v4.(*Response).WriteHeader"}),
		at(0x20, helloFrame), at(0x40, authFrame),
		at(0x70, cost.Frame{Func: "github.com/labstack/echo/v4.(*Echo).ServeHTTP"}), at(0x60, serveFrame),
	}
	tests := []struct {
		name    string
		stacks  [][]place
		owners  []string
		reasons []string
	}{
		{"nested", [][]place{request()}, []string{"shop.hello", "shop.Auth", "web.(*logger).ServeHTTP"}, []string{"", "", ""}},
		{"again", [][]place{request(), request()}, []string{"shop.hello", "shop.Auth", "web.(*logger).ServeHTTP"}, []string{"", "", ""}},
		{"inlined", [][]place{inlined}, []string{"shop.hello", "shop.Auth"}, []string{"the compiler inlined it into net/http.HandlerFunc.ServeHTTP", ""}},
		{"inlined, and not", [][]place{inlined, request()}, []string{"shop.hello", "shop.Auth", "web.(*logger).ServeHTTP"}, []string{"", "", ""}},
		{"not, and inlined", [][]place{request(), inlined}, []string{"shop.hello", "shop.Auth", "web.(*logger).ServeHTTP"}, []string{"", "", ""}},
		{"without a prologue", [][]place{bare}, []string{"shop.hello"}, []string{"main.hello has no prologue to probe"}},
		{"a handler that a framework's middleware calls itself", [][]place{direct}, []string{"shop.hello", "shop.Auth"}, []string{"", ""}},
		{"nobody", [][]place{{at(0x60, serveFrame)}}, nil, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := newCensus(tt.stacks)
			var owners, reasons []string
			for _, w := range c.found {
				owners, reasons = append(owners, w.Owner.Name), append(reasons, w.Reason)
				if (len(w.pushes) == 0) != (w.Reason != "") {
					t.Errorf("%s: got pushes %x and reason %q, want one of them", w.Owner.Name, w.pushes, w.Reason)
				}
			}
			if !slices.Equal(owners, tt.owners) || !slices.Equal(reasons, tt.reasons) {
				t.Errorf("got %q for %q, want %q for %q", owners, reasons, tt.owners, tt.reasons)
			}
		})
	}
}

func TestAround(t *testing.T) {
	alone := []place{at(0x40, authFrame), at(0x30, funcFrame), at(0x60, serveFrame)} // Auth refused the request
	for _, stacks := range [][][]place{{request(), alone}, {alone, request()}} {
		for _, w := range newCensus(stacks).found {
			if want := w.Owner.Name != "shop.hello"; w.Around != want || !w.Met {
				t.Errorf("%s: got around %t and met %t, want %t and true", w.Owner.Name, w.Around, w.Met, want)
			}
		}
	}
	if w := newCensus([][]place{alone}).found[0]; w.Around {
		t.Errorf("got %+v around another, of a request that it answered itself", w)
	}
}

// TestSampled adds who is on no stack when a request is answered: what a framework's
// middleware calls before the next, a handler that writes nothing, and what the
// compiler inlined into its caller.
func TestSampled(t *testing.T) {
	next := cost.Frame{Func: "github.com/gin-gonic/gin.(*Context).Next", File: "/mod/gin/context.go", Line: 192, Decl: 188}
	load := cost.Frame{Func: "main.(*session).Load", File: "/src/shop/mw.go", Line: 73, Decl: 70}
	read := cost.Frame{Func: "net.(*conn).Read", File: "/go/net/net.go", Line: 190, Decl: 183}
	small := cost.Frame{Func: "main.small", File: "/src/shop/mw.go", Line: 81, Decl: 80}
	made := map[cost.Frame][]symbol{}
	for push, f := range map[uint64]cost.Frame{0x100: next, 0x110: load, 0x30: funcFrame, 0x40: authFrame, 0x60: serveFrame} {
		f.Line = 0
		made[f] = []symbol{{f.Func, push}}
	}
	later := load
	later.Line = 75
	profile := []cost.Stack{
		{Frames: []cost.Frame{read, load, next, authFrame, next, serveFrame}},
		{Frames: []cost.Frame{later, next, authFrame, next, serveFrame}},
		{Frames: []cost.Frame{small, funcFrame, serveFrame}},
		{Frames: []cost.Frame{{Func: "runtime.goexit"}}},
		{},
	}
	c := newCensus([][]place{request()})
	c.sampled(profile, made)
	var got []string
	for _, w := range c.found {
		got = append(got, w.Owner.Name+": "+strings.Join(w.Symbols, " ")+w.Reason)
	}
	want := []string{
		"shop.hello: main.hello", "shop.Auth: main.main.Auth.func1", "web.(*logger).ServeHTTP: example.com/web.(*logger).ServeHTTP",
		"shop.(*session).Load: main.(*session).Load", "shop.small: the compiler inlined it into net/http.HandlerFunc.ServeHTTP",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	chosen, _ := c.chooseByName([]string{"shop.Auth"})
	if len(chosen) != 3 || !chosen[2].Aside || chosen[2].Owner.Name != "shop.(*session).Load" {
		t.Errorf("got %+v beside shop.Auth, want the session's, too", chosen)
	}
}

func TestBeside(t *testing.T) {
	nothing := errors.New("nothing by that name")
	if got := new(census).beside(nothing); got != nothing {
		t.Errorf("got %v where nobody was seen", got)
	}
	got := newCensus([][]place{request()}).beside(nothing)
	if want := "nothing by that name; owners seen: shop.hello, shop.Auth, web.(*logger).ServeHTTP"; !errors.Is(got, nothing) || got.Error() != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

func TestNamed(t *testing.T) {
	c := newCensus([][]place{request()})
	tests := []struct {
		name    string
		names   []string
		owners  []string // those aside in brackets
		unknown []string
	}{
		{"as the table has it", []string{"shop.Auth"}, []string{"[shop.hello]", "shop.Auth"}, nil},
		{"by line", []string{"mw.go:10"}, []string{"[shop.hello]", "shop.Auth"}, nil},
		{"by directory and line", []string{"shop/mw.go:10"}, []string{"[shop.hello]", "shop.Auth"}, nil},
		{"by the linker's name", []string{"main.hello"}, []string{"shop.hello"}, nil},
		{"two", []string{"shop.Auth", "main.hello"}, []string{"shop.hello", "shop.Auth"}, nil},
		{"another line", []string{"mw.go:1"}, nil, []string{"mw.go:1"}},
		{"the end of a file's name", []string{"w.go:10"}, nil, []string{"w.go:10"}},
		{"unknown", []string{"shop.Auth", "shop.Nope"}, []string{"[shop.hello]", "shop.Auth"}, []string{"shop.Nope"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			chosen, unknown := c.chooseByName(tt.names)
			var owners []string
			for _, w := range chosen {
				name := w.Owner.Name
				if w.Aside {
					name = "[" + name + "]"
				}
				owners = append(owners, name)
			}
			if !slices.Equal(owners, tt.owners) || !slices.Equal(unknown, tt.unknown) {
				t.Errorf("got %q, unknown %q, want %q, unknown %q", owners, unknown, tt.owners, tt.unknown)
			}
		})
	}
}
