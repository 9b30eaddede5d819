package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
)

// versionCmd prints the version.
type versionCmd struct{}

// Run prints it.
func (c *versionCmd) Run(t *cli.Terminal) error {
	fmt.Fprintf(t.Out, "tare %s %s %s/%s\n", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return nil
}

// version is the module's, as the toolchain recorded it.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}
