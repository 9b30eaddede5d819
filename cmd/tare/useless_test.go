package main

import (
	"os"
	"strings"
	"testing"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
)

// A flag that has a default and does nothing is refused as one without is.
func TestUselessFlags(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("saved", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	url := deadURL(t)
	for args, want := range map[string]string{
		"cost -c 4 " + url:                    "--connections does nothing without --load",
		"cost --no-count " + url:              "--count does nothing without --pid, --cgroup or --container",
		"cost --max-overhead 1% " + url:       "--max-overhead does nothing without --marks",
		"cost --profile saved --for 30s":      "--for does nothing for saved profiles",
		"cost --study one --for 30s":          "--for does nothing beside --study",
		"cost --study one --no-count":         "--count does nothing beside --study",
		"flame -c 16 " + url:                  "--connections does nothing without --load",
		"flame --for 10s saved":               "--for does nothing for a saved profile",
		"diff --connections 16 " + url + " b": "--connections does nothing without --load",
		"doctor -c 4 " + url:                  "--connections does nothing without --load",
		"doctor --from saved --for 10s":       "--for does nothing for saved evidence",
		"trace -c 4 " + url:                   "--connections does nothing without --load",
		"trace --no-samples saved":            "--samples does nothing for a trace that is there already",
		"trace --for 5s saved":                "--for does nothing for a trace that is there already",
		"watch --hz 9 " + url:                 "--hz does nothing for services that profile themselves",
		"watch --keep-bytes 5MiB " + url:      "--keep-bytes does nothing without --keep",
		"watch --since 1h --every 5s runs":    "--every does nothing beside --since",
		"whatif --pid 1 --owner a -c 4":       "--connections does nothing without --load",
	} {
		if status, _, said := tare(t, strings.Fields(args)...); status != cli.ExitUsage || !strings.Contains(said, want) {
			t.Errorf("tare %s: got exit status %d and %q, want %d and %q", args, status, said, cli.ExitUsage, want)
		}
	}
	if status, _, said := tare(t, "cost", url); status != cli.ExitFailed || strings.Contains(said, "does nothing") {
		t.Errorf("without flags: got exit status %d and %q, want %d: nothing listens there", status, said, cli.ExitFailed)
	}
}
