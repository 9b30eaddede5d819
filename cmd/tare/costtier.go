package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cost"
)

// cheapest looks at a process by the cheapest means that answers: by samples from
// outside or, where these cannot be had, by the profiles that it shows itself.
// Several processes, of a group or container, are looked at from outside alone.
func (c *costCmd) cheapest(ctx context.Context, t *cli.Terminal, b *bill) error {
	why := c.watch(ctx, t, b)
	if c.PID == 0 || !errors.Is(why, cost.ErrNotSupported) {
		return why
	}
	s, err := exposed(ctx, c.PID, "cost")
	if err != nil {
		fmt.Fprintf(t.Err, "its own profiles cannot be had instead: %v\n", err)
		return why
	}
	fmt.Fprintf(t.Err, "it cannot be sampled from outside, so it is asked for its own profile: %v\n", why)
	b.warnings = append(b.warnings, fmt.Errorf("this is the service's own profile, for from outside it cannot be sampled: %w", why))
	if err := c.profile(ctx, t, b, s); err != nil {
		return err
	}
	b.local = 0 // it is of no use to name --pid
	if c.Marks {
		b.unmarked = why
	}
	return nil
}
