package main

import (
	"fmt"
	"runtime"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
)

// versionCmd prints the version.
type versionCmd struct{}

// Run prints it.
func (c *versionCmd) Run(t *cli.Terminal) error {
	fmt.Fprintf(t.Out, "tare %s %s %s/%s\n", cli.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return nil
}
