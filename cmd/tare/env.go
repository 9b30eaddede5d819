package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/lab/env"
)

// envCmd tells what on this machine disturbs measuring.
type envCmd struct {
	Why    bool `help:"Explain why each setting matters."`
	JSON   bool `name:"json" help:"Print JSON."`
	Strict bool `help:"Exit with status 3 if something disturbs measurements."`
}

// Help tells the verdicts apart.
func (c *envCmd) Help() string {
	return `Examples:

  tare env                   what disturbs measurements here, the most serious first
  tare env --why             with the reason for each line
  tare env --strict          exit with status 3 if something disturbs, as a check in CI

The verdict on each setting:

    disturbs  it changes what is measured
    unknown   this system does not report it
    note      it matters for comparisons with other machines, or under special loads
    ok        nothing to do

env reads the machine twice, a second apart, to see what other programs use. It changes
nothing and needs no privileges.`
}

// Run reads the machine, which takes a second, and shows the gravest first.
func (c *envCmd) Run(ctx context.Context, t *cli.Terminal) error {
	facts := env.Read(ctx)
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("reading the environment: %w", err)
	}
	slices.SortStableFunc(facts, func(a, b env.Fact) int { return a.Verdict.Grave() - b.Verdict.Grave() })
	if err := c.show(t, facts); err != nil {
		return err
	}
	if c.Strict {
		return refuse(facts)
	}
	return nil
}

// refuse is the error of a machine on which something disturbs measuring.
func refuse(facts []env.Fact) error {
	var disturbing []string
	for _, f := range facts {
		if f.Verdict == env.Disturbs {
			disturbing = append(disturbing, f.Name)
		}
	}
	if disturbing == nil {
		return nil
	}
	return &cli.Failure{
		Status: cli.ExitThreshold, Hint: "the remedies are above, with the reasons",
		Err: fmt.Errorf("measuring is disturbed by %s", strings.Join(disturbing, ", ")),
	}
}

func (c *envCmd) show(t *cli.Terminal, facts []env.Fact) error {
	if c.JSON {
		return t.JSON(facts)
	}
	var page strings.Builder
	name := 0
	for _, f := range facts {
		name = max(name, len(f.Name))
	}
	counts := map[env.Verdict]int{}
	for _, f := range facts {
		counts[f.Verdict]++
		head := fmt.Sprintf("%-8s  %-*s  ", f.Verdict, name, f.Name)
		width := max(60, min(t.Width, 120))
		value := doc.Wrap(f.Value, width-len(head))
		fmt.Fprintf(&page, "%s%s\n", tint(t, f.Verdict, head), strings.Join(value, "\n"+strings.Repeat(" ", len(head))))
		// What is said of a fact begins further left, so that commands fit.
		var said []string
		if c.Why || f.Verdict == env.Disturbs {
			said = append(said, doc.Wrap(f.Why, width-12)...)
		}
		if f.Remedy != "" {
			said = append(said, doc.Wrap("→ "+f.Remedy, width-12)...)
		}
		for _, line := range said {
			fmt.Fprintf(&page, "%12s%s\n", "", line)
		}
	}
	fmt.Fprintf(&page, "\n%d disturb, %d unknown, %d to note, %d ok\n",
		counts[env.Disturbs], counts[env.Unknown], counts[env.Note], counts[env.OK])
	fmt.Fprint(t.Out, page.String())
	return nil
}

// tint colours a line's head by its verdict.
func tint(t *cli.Terminal, v env.Verdict, head string) string {
	colour := map[env.Verdict]string{env.Disturbs: "31", env.Unknown: "35", env.Note: "33", env.OK: "32"}[v]
	if !t.Colour || colour == "" {
		return head
	}
	return "\x1b[" + colour + "m" + head + "\x1b[0m"
}
