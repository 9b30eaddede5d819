package cli

import (
	"runtime/debug"
	"strings"
)

// Version is the module's, as the toolchain recorded it.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}

// BuildDate is the day of the commit that the program was built from, such as 2026-11-26.
// It is "" where the toolchain recorded none.
func BuildDate() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.time" {
			day, _, _ := strings.Cut(s.Value, "T")
			return day
		}
	}
	return ""
}
