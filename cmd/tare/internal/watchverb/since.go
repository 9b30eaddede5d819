package watchverb

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cost/pprof"
	"github.com/tarehq/tare/cost/watch/change"
	"github.com/tarehq/tare/cost/watch/ring"
	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/stats/unit"
)

// showSince shows what changed, by the profiles of a folder.
func (c *Command) showSince(ctx context.Context, t *cli.Terminal) error {
	const example = "tare watch --since 1h DIR"
	switch {
	case c.Since < time.Minute:
		return cli.Usage(example, fmt.Errorf("--since %s: at least 1m", c.Since))
	case len(c.What) != 1 || c.Named() || c.AllGo || c.K8s:
		return cli.Usage(example, errors.New("--since wants the folder of --keep, and no service"))
	}
	if err := t.RefuseFlags(true, "beside --since", "every", "for", "hz", "count", "answers", "budget", "max-owners", "listen", "otlp", "remote-write", "profiles", "keep", "keep-bytes", "quiet"); err != nil {
		return err
	}
	entries, err := ring.List(c.What[0])
	if err != nil {
		return &cli.Failure{Status: cli.ExitFailed, Err: err, Hint: "name the folder that --keep wrote"}
	}
	begin := time.Now().Add(-c.Since)
	by := map[string][]ring.Entry{}
	for _, e := range entries {
		if e.Begun.Add(e.Duration).After(begin) {
			by[e.Service] = append(by[e.Service], e)
		}
	}
	if len(by) == 0 {
		return &cli.Failure{Status: cli.ExitFailed, Err: fmt.Errorf("%s has no profile of the last %s", c.What[0], c.Since), Hint: hintOf(entries)}
	}
	reports := []*change.Report{}
	var warnings []string
	for _, service := range slices.Sorted(maps.Keys(by)) {
		points, unread := read(by[service])
		for _, err := range unread {
			warnings = append(warnings, err.Error())
		}
		reports = append(reports, change.Find(service, points, change.Options{}))
		if ctx.Err() != nil {
			break
		}
	}
	return t.Show(ctx, cli.Result{JSON: reports, Page: changesPage(reports, warnings)}, c.JSON, nil)
}

// hintOf says what there is instead.
func hintOf(entries []ring.Entry) string {
	if len(entries) == 0 {
		return "name the folder that --keep wrote"
	}
	return fmt.Sprintf("the latest is of %s", entries[len(entries)-1].Begun.Local().Format("2 January 15:04"))
}

// read reads profiles. Those that cannot be read are left out, and told.
func read(entries []ring.Entry) (points []change.Point, unread []error) {
	for _, e := range entries {
		p, err := readProfile(e.Path)
		if errors.Is(err, os.ErrNotExist) {
			continue // it has just given way
		}
		if err != nil {
			unread = append(unread, fmt.Errorf("%s: %w", e.Path, err))
			continue
		}
		point := change.Point{Build: e.Build, Begun: e.Begun, Duration: e.Duration, Stacks: p.Stacks}
		point.Requests, point.Margin = p.Requests()
		point.Counted = p.Counted()
		points = append(points, point)
	}
	return points, unread
}

func readProfile(path string) (*pprof.Profile, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return pprof.Read(f)
}

// changesPage shows what changed.
func changesPage(reports []*change.Report, warnings []string) doc.Page {
	var p doc.Page
	for _, r := range reports {
		p.Add(doc.Heading{Level: 2, Text: r.Service})
		p.Add(doc.Note(restText(r)))
		if len(r.Changes) == 0 {
			text := "Nothing changed beyond noise."
			if r.Compare+r.Search == 0 {
				text = "There is too little to compare: it takes ten minutes of a build, or more."
			}
			p.Add(doc.Paragraph{Text: doc.Plain(text)})
			continue
		}
		var list doc.List
		for _, c := range r.Changes {
			list.Items = append(list.Items, doc.Plain(changeText(&c, r.Per)))
		}
		p.Add(list)
	}
	p.Add(doc.Note("False alarms: one in a hundred hours of a build, one or two in a hundred new builds that are equal, and many more if the load drifts for minutes. A process may differ from the next without a change in the source: tare ab compares builds in many fresh processes."))
	p.Add(cli.Warnings(warnings)...)
	return p
}

// restText says what a report rests on.
func restText(r *change.Report) string {
	text := fmt.Sprintf("%s of %s to %s, %s; builds were compared and steps searched for %s", unit.Plural(r.Points, "profile"), r.From.Local().Format("15:04"), r.To.Local().Format("15:04"),
		unit.Plural(len(r.Builds), "build"), unit.Plural(r.Compare+r.Search, "time"))
	if r.Per != "request" {
		text += "; requests were not counted, so costs are per second, and a busier service costs more"
	}
	for _, b := range r.Short {
		text += fmt.Sprintf("; build %s, or the one before it, has fewer than five blocks: too few to compare. A block is a minute, or as long as one count of requests is used", b)
	}
	return text
}

// changeText says one change.
func changeText(c *change.Change, per string) string {
	who := "all of it"
	if c.Owner != "" {
		who = c.Owner
		if c.Where != "" {
			who += " (" + c.Where + ")"
		}
	}
	how, low, high := "more", c.Low, c.High
	if c.Diff() < 0 {
		how, low, high = "less", -c.High, -c.Low
	}
	format := func(ns float64) string { return unit.Format(ns, unit.Nanoseconds) }
	text := fmt.Sprintf("%s  %s costs %s %s a %s (95 %%: %s to %s), %s before and %s now", c.At.Local().Format("15:04"), who,
		format(math.Abs(c.Diff())), how, per, format(low), format(high), format(c.Before), format(c.After))
	if c.Replaced != "" {
		return text + fmt.Sprintf(", with build %s in place of %s", c.Build, c.Replaced)
	}
	return text + fmt.Sprintf(", without another build (%s)", c.Build)
}
