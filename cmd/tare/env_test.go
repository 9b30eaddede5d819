package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/lab/env"
)

var someFacts = []env.Fact{
	{
		Name: "busy processes", Value: "postgres (300) 50 %, java (301) 30 %, node (302) 20 %, and 12 more", Verdict: env.Disturbs,
		Why: "they are what competes with generator and service", Remedy: "stop them, or wait until they have finished",
	},
	{Name: "governor", Value: "not told", Verdict: env.Unknown, Why: "a CPU that clocks down"},
	{Name: "swap", Value: "none", Verdict: env.OK, Why: "a page that has to come back <from disk>"},
}

func TestEnvTable(t *testing.T) {
	const want = `disturbs  busy processes  postgres (300) 50 %, java (301) 30 %, node (302) 20 %,
                          and 12 more
            they are what competes with generator and service
            → stop them, or wait until they have finished
unknown   governor        not told
ok        swap            none

1 disturb, 1 unknown, 0 to note, 1 ok
`
	var out bytes.Buffer
	if err := (&envCmd{}).show(&cli.Terminal{Out: &out, Width: 80}, someFacts); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); got != want {
		t.Errorf("facts at 80 columns:\ngot\n%s\nwant\n%s", got, want)
	}
}

func TestEnvWhy(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // one look will do
	facts := env.Read(ctx)
	for width, most := range map[int]int{40: 60, 80: 80, 200: 120} {
		var out bytes.Buffer
		if err := (&envCmd{Why: true}).show(&cli.Terminal{Out: &out, Width: width}, facts); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > most && strings.Count(strings.TrimSpace(line), " ") > 0 {
				t.Errorf("width %d: got a line of %d columns, want at most %d: %q", width, n, most, line)
			}
		}
	}
}

func TestEnvJSON(t *testing.T) {
	var out bytes.Buffer
	if err := (&envCmd{JSON: true}).show(&cli.Terminal{Out: &out, Colour: true}, someFacts); err != nil {
		t.Fatal(err)
	}
	var got []env.Fact
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatalf("%v in\n%s", err, out.String())
	}
	if !reflect.DeepEqual(got, someFacts) {
		t.Errorf("got %+v, want %+v", got, someFacts)
	}
}

func TestEnvStrict(t *testing.T) {
	var f *cli.Failure
	if err := refuse(someFacts); !errors.As(err, &f) || f.Status != cli.ExitThreshold || !strings.Contains(err.Error(), "busy processes") {
		t.Errorf("disturbed: got %v, want exit status %d and the name", err, cli.ExitThreshold)
	}
	if err := refuse(someFacts[1:]); err != nil {
		t.Errorf("not disturbed: got %v, want nil", err)
	}
}
