package watchverb

import (
	"embed"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
)

// monitoring holds the rules for Prometheus and the dashboard for Grafana.
//
//go:embed rules.yml grafana.json
var monitoring embed.FS

// writeRules writes the rules and the dashboard.
func (c *Command) writeRules(t *cli.Terminal) error {
	if len(c.What) > 0 || c.Named() || c.AllGo || c.K8s {
		return cli.Usage("tare watch --write-rules DIR", errors.New("--write-rules watches nothing"))
	}
	if err := os.MkdirAll(c.WriteRules, 0o755); err != nil {
		return err
	}
	for _, file := range []struct{ is, name string }{{"rules.yml", "tare-rules.yml"}, {"grafana.json", "tare-dashboard.json"}} {
		text, err := monitoring.ReadFile(file.is)
		if err != nil {
			return err
		}
		path := filepath.Join(c.WriteRules, file.name)
		if err := cli.WriteFile(path, func(w io.Writer) error { _, err := w.Write(text); return err }); err != nil {
			return err
		}
		t.Note("wrote %s", path)
	}
	return nil
}
