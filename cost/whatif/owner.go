package whatif

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/tarehq/tare/cost/bpf/probe"
	"github.com/tarehq/tare/stats/unit"
)

// AmbiguousError says that several owners have the name.
type AmbiguousError struct {
	Name   string
	Owners []probe.Watched
}

// Met reports whether one of the owners was seen to handle requests. If none was,
// a constructor cannot be distinguished from what it returns.
func (e *AmbiguousError) Met() bool {
	for _, o := range e.Owners {
		if o.Met {
			return true
		}
	}
	return false
}

func (e *AmbiguousError) Error() string {
	var list []string
	for _, o := range e.Owners {
		list = append(list, o.Owner.Name+" ("+o.Owner.Where()+")")
	}
	all := strings.Join(list, ", ")
	if e.Met() {
		return fmt.Sprintf("owner %s is %d owners: %s", e.Name, len(e.Owners), all)
	}
	return fmt.Sprintf("%d functions have the name %s, and none was seen to handle a request within %s: %s", len(e.Owners), e.Name, probe.Glance, all)
}

// findOwner returns the one owner that has the name.
func (r *run) findOwner(ctx context.Context) (probe.Watched, error) {
	owners, err := r.target.Owners(ctx, []string{r.Owner}, probe.Glance)
	if err != nil {
		return probe.Watched{}, err
	}
	var found []probe.Watched
	for _, o := range owners {
		if !o.Aside {
			found = append(found, o)
		}
	}
	if len(found) != 1 {
		return probe.Watched{}, &AmbiguousError{r.Owner, found}
	}
	return found[0], nil
}

// timeCalls times the owner's calls by the clock for a while, within a budget that it
// announces before spending it.
func (r *run) timeCalls(ctx context.Context) (*probe.Measurement, error) {
	price, err := probe.Calibrate(ctx)
	if err != nil {
		return nil, err
	}
	owners, err := r.target.Owners(ctx, []string{r.Owner}, probe.Glance)
	if err != nil {
		return nil, err
	}
	w, err := r.target.NewWatch(owners, price)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	f, err := w.Look(ctx, probe.Glance)
	if err != nil {
		return nil, err
	}
	o, err := r.planTiming(f)
	if err != nil {
		return nil, err
	}
	r.Progress(fmt.Sprintf("timing its calls for %s first: a hit costs %s here, and %s hits a second cost %s of the process's CPU while they are timed, which is %s of the time",
		o.For, unit.Format(float64(price.Hit), unit.Nanoseconds), unit.Number(math.Round(f.Hits)), unit.Format(f.Share, unit.Share), unit.Format(o.Share, unit.Share)))
	return w.Run(ctx, o)
}

// planTiming returns how calls can be timed within the budget, given what timing all
// of them would cost.
func (r *run) planTiming(f *probe.Forecast) (probe.Options, error) {
	const d = 2 * time.Second
	share := 1.0
	if f.Share > r.MaxOverhead {
		share = r.MaxOverhead / f.Share
	}
	if share < probe.LeastShare {
		return probe.Options{}, fmt.Errorf("timing its calls for a tenth of the time would cost %s of the process's CPU, more than the budget of %s",
			unit.Format(f.Share*probe.LeastShare, unit.Share), unit.Format(r.MaxOverhead, unit.Share))
	}
	// Two windows, or one that is long enough to see calls end.
	return probe.Options{For: d, Share: share, Window: max(d/10, time.Duration(share*float64(d/2)))}, nil
}
