package agent

import (
	"github.com/tarehq/tare/lab/fleet/wire"
	"github.com/tarehq/tare/load"
)

// Check is what an agent says of a load.
func (c *Config) Check(o load.Options) error {
	if err := c.fill(); err != nil {
		return err
	}
	return c.check(&wire.Job{Options: o})
}
