package loadverb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/load"
	"github.com/tarehq/tare/stats/unit"
)

// search finds the highest rate that holds a threshold.
func (c *Command) search(ctx context.Context, t *cli.Terminal, o load.Options) error {
	if _, err := load.ParseThreshold(c.Offer.FindMax); err != nil {
		return cli.Usage("--find-max takes p50 to p99.999, max, mean or errors, <, and a bound", fmt.Errorf("--find-max: %w", err))
	}
	ctx, w, err := c.watch(ctx, t)
	if err != nil {
		return err
	}
	defer w.restore() // whatever happens
	o.Progress = w.progress
	found, err := load.FindMax(ctx, o, load.SearchOptions{
		Threshold: c.Offer.FindMax, Step: c.Offer.Duration,
		Report: func(p load.Probe) { w.say(probeLine(p)) },
	})
	werr := w.close()
	if found == nil || len(found.Probes) == 0 && err != nil {
		return explainRefusal(err)
	}
	if err := errors.Join(c.Output.keepJSON(found), c.Output.show(t, c.searchPage(found), found)); err != nil {
		return err
	}
	if err := cmp.Or(err, werr); err != nil {
		return explainFailure(err)
	}
	return searchVerdict(found)
}

// probeLine tells of a probe in a line.
func probeLine(p load.Probe) string {
	parts := []string{unit.Format(p.Rate, unit.PerSecond)}
	if p.Held {
		parts = append(parts, "held")
	} else {
		parts = append(parts, "not held: "+strings.ReplaceAll(p.Reason, "\n", ": "))
	}
	if p.Value != "" {
		parts = append(parts, p.Value)
	}
	if p.Confirm {
		parts = append(parts, "asked again")
	}
	return strings.Join(parts, ", ")
}

// searchPage builds the report of a search.
func (c *Command) searchPage(found *load.SearchResult) doc.Page {
	p := doc.Page{Title: c.title()}
	var probes doc.List
	for _, probe := range found.Probes {
		probes.Items = append(probes.Items, doc.Plain(probeLine(probe)))
	}
	p.Add(doc.Heading{Level: 1, Text: c.title()}, probes, doc.Paragraph{Text: doc.Spans{{Text: conclude(found), Strong: true}}})
	p.Add(warnings(found.Warnings)...)
	if found.Ended != "" {
		p.Add(doc.Paragraph{Text: doc.Plain("ended early: " + found.Ended)})
	}
	return p
}

// conclude says what a search found.
func conclude(found *load.SearchResult) string {
	rate := unit.Format(found.Rate, unit.PerSecond)
	switch {
	case found.Rate == 0 && found.Ended != "":
		return "no rate was found yet"
	case found.Rate == 0:
		return noneFound(found)
	case found.Confirmed:
		return fmt.Sprintf("%s is the highest rate found to hold %s, confirmed by a second probe", rate, found.Threshold)
	}
	return fmt.Sprintf("%s held %s, not confirmed by a second probe", rate, found.Threshold)
}

// noneFound says what became of a search that ended without a rate.
func noneFound(found *load.SearchResult) string {
	switch once := heldOnce(found); {
	case once > 0:
		return fmt.Sprintf("%s held %s once, and not again", unit.Format(once, unit.PerSecond), found.Threshold)
	case boundByGenerator(found):
		return fmt.Sprintf("no rate was found to hold %s: the generator was the limit", found.Threshold)
	}
	return fmt.Sprintf("no rate held %s", found.Threshold)
}

// searchVerdict is the exit status of a search that was shown. What the generator
// did not reach comes first: the threshold was not tried there.
func searchVerdict(found *load.SearchResult) error {
	switch {
	case found.Ended == "interrupted":
		return &cli.Failure{Status: cli.ExitInterrupted}
	case found.Rate == 0 && boundByGenerator(found):
		return &cli.Failure{Status: cli.ExitNotOffered, Err: errors.New("whether any rate holds is not known: the generator was the limit"), Hint: generatorHint}
	case found.Rate == 0 && heldOnce(found) == 0:
		return &cli.Failure{Status: cli.ExitThreshold}
	case found.Rate == 0:
		return &cli.Failure{Status: cli.ExitInconclusive, Err: errors.New("no rate held a second time"), Hint: probeHint}
	case !found.Confirmed:
		return &cli.Failure{Status: cli.ExitInconclusive, Err: errors.New("the rate found was not confirmed"), Hint: probeHint}
	case boundByGenerator(found):
		return &cli.Failure{Status: cli.ExitNotOffered, Err: errors.New("whether higher rates hold is not known: the generator was the limit"), Hint: generatorHint}
	}
	return nil
}

// What to do about a search that did not find what was looked for.
const (
	generatorHint = "give the generator more --threads, or CPUs of its own"
	probeHint     = "raise --duration, the length of each probe"
)

// heldOnce is the highest rate that held in a probe; 0 if none did.
func heldOnce(found *load.SearchResult) float64 {
	var rate float64
	for _, p := range found.Probes {
		if p.Held {
			rate = max(rate, p.Rate)
		}
	}
	return rate
}

// boundByGenerator reports whether the generator may be why the lowest rate that
// did not hold did not.
func boundByGenerator(found *load.SearchResult) bool {
	var lowest *load.Probe
	for i := range found.Probes {
		if p := &found.Probes[i]; !p.Held && p.Rate > found.Rate && (lowest == nil || p.Rate < lowest.Rate) {
			lowest = p
		}
	}
	return lowest != nil && lowest.Bound
}
