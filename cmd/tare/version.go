package main

import (
	"fmt"
	"runtime"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
)

// versionCmd prints the version.
type versionCmd struct {
	JSON bool `name:"json" help:"Print JSON."`
}

// Run prints it.
func (c *versionCmd) Run(t *cli.Terminal) error {
	if c.JSON {
		return t.JSON(map[string]string{"version": cli.Version(), "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH})
	}
	fmt.Fprintf(t.Out, "tare %s %s %s/%s\n", cli.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return nil
}
