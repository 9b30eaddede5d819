package probe

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/stats/unit"
)

// Glance is long enough to see who handles requests, and how many calls there are.
const Glance = 400 * time.Millisecond

// LeastShare is the smallest share of the time for which probes should be attached. If
// even that costs too much, they would disturb what they measure while they are.
const LeastShare = 0.1

// SeesRequests reports whether requests were counted where they begin, as far as the
// owners' calls have shown. A program may have the function and begin other requests
// elsewhere, as where net/http serves profiles beside another engine.
func (m *Measurement) SeesRequests() bool {
	called := func(w cost.Wall) bool { return w.Calls > 0 }
	return m.Requests > 0 || !slices.ContainsFunc(m.Walls, called)
}

// Uncalled returns the owners that somebody named and that were never seen to be
// called, neither before nor while they were watched. It excludes an owner with the
// name of another that was called: that is the other's constructor.
func Uncalled(owners []Watched, walls []cost.Wall) []cost.Owner {
	called := map[string]bool{}
	for _, w := range walls {
		called[w.Owner.Name] = called[w.Owner.Name] || w.Calls > 0
	}
	var never []cost.Owner
	for _, o := range owners {
		if !o.Met && o.Reason == "" && !called[o.Owner.Name] {
			never = append(never, o.Owner)
		}
	}
	return never
}

// ErrUncalled returns an error that says whose calls were seen in place of an owner's
// that had none in so many requests: a constructor has the name that is in the source,
// but what it returned is called.
func (t *Target) ErrUncalled(ctx context.Context, o cost.Owner, requests float64) error {
	var seen []string
	if owners, err := t.Owners(ctx, nil, Glance); err == nil {
		for _, o := range owners {
			seen = append(seen, o.Owner.Name)
		}
	}
	return errUncalled(o, requests, seen)
}

func errUncalled(o cost.Owner, requests float64, seen []string) error {
	text := o.Name + " (" + o.Where() + ") was never called"
	switch {
	case requests > 0:
		text += " while " + unit.Number(requests) + " requests were handled"
	case len(seen) == 0:
		return errors.New(text + ", and no request was seen: load the service")
	}
	if len(seen) > 0 {
		text += "; owners seen: " + strings.Join(seen, ", ")
	}
	return errors.New(text)
}
