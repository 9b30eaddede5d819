//go:build linux && amd64

package probe

import (
	"context"
	"time"
)

// Window counts all the time.
func (c *Counter) Window(ctx context.Context, d time.Duration) (Reading, error) {
	return c.window(ctx, d)
}
