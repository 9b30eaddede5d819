package arm_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tarehq/tare/lab/arm"
	"github.com/tarehq/tare/lab/study"
)

const callers = `package main

import "os"

type greeter interface{ greet(string) int }

type loud struct{ n int }

//go:noinline
func (l *loud) greet(s string) int { l.n++; return l.n + len(s) }

//go:noinline
func open(g greeter) int { return g.greet("a") }

//go:noinline
func closed(l *loud) int { return l.greet("a") }

//go:noinline
func both(g greeter, l *loud) int { return g.greet("a") + l.greet("b") }

//go:noinline
func none(s []int, i int) int { return s[i] }

func main() {
	l := &loud{}
	var g greeter = l
	if len(os.Args) > 9 {
		g = nil
	}
	println(open(g), closed(l), both(g, l), none(make([]int, 9), len(os.Args)))
}
`

func TestDisassemble(t *testing.T) {
	dir := tree(t, "go.mod", "module example.com/calls\n\ngo 1.26\n", "main.go", callers)
	p := build(t, &arm.Builder{Cache: t.TempDir()}, study.Arm{Name: "calls", Go: dir})
	want := map[string]string{"main.open": "indirect", "main.closed": "direct", "main.both": "direct and indirect", "main.none": "none"}
	code, err := arm.Disassemble(t.Context(), p.Path, []string{"main.open", "main.closed", "main.both", "main.none", "main.absent", "main.ope."})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, c := range code {
		got[c.Func] = c.Calls()
		if first := c.Instructions[0]; !strings.HasPrefix(first.At, "main.go:") || first.Text == "" {
			t.Errorf("%s begins with %+v, want a line of main.go and an instruction", c.Func, first)
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("calls: got %v, want %v", got, want)
	}
}

func TestDisassembleErrors(t *testing.T) {
	if _, err := arm.Disassemble(t.Context(), "/nowhere/x", []string{"main.main"}); err == nil || !strings.Contains(err.Error(), "disassembling") {
		t.Errorf("a program that is not there: got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := arm.Disassemble(ctx, "/nowhere/x", []string{"main.main"}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v, want %v", err, context.Canceled)
	}
}

// How a package is built is part of which program it is.
func TestBuildSettings(t *testing.T) {
	dir := tree(t, "go.mod", "module example.com/mine\n\ngo 1.26\n",
		"main.go", "package main\n\nvar text = \"one\"\n\nfunc main() { println(text) }\n",
		"tagged.go", "//go:build tagged\n\npackage main\n\nfunc init() { text += \" tagged\" }\n")
	b := &arm.Builder{Cache: t.TempDir()}
	for _, c := range []struct {
		how  []string
		want string
	}{
		{nil, "one\n"},
		{[]string{"-ldflags=-X main.text=two"}, "two\n"},
		{[]string{"-ldflags=-X main.text=two", "GOFLAGS=-tags=tagged"}, "two tagged\n"},
		{nil, "one\n"},
	} {
		p := build(t, b, study.Arm{Name: "mine", Go: dir, Build: c.how})
		if got := output(t, p); got != c.want {
			t.Errorf("built with %q: it prints %q, want %q", c.how, got, c.want)
		}
	}
}
