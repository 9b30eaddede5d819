package whatif

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/tarehq/tare/cost/bpf/probe"
	"github.com/tarehq/tare/cost/capture"
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
	return capture.Calls{Owners: []string{r.Owner}, For: 2 * time.Second, MaxOverhead: r.MaxOverhead, Progress: r.Progress}.Time(ctx, r.target)
}
