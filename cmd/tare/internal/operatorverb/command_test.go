package operatorverb

import (
	"strings"
	"testing"
)

func TestArguments(t *testing.T) {
	for want, c := range map[string]Command{
		"operator":                         {},
		"operator -manifests":              {Manifests: true},
		"operator -image r/t:1 -manifests": {Manifests: true, Image: "r/t:1"},
		"operator -namespaces a,b -image r/t:1 -metrics :8080 -health :8081 -leader-namespace ns": {
			Namespaces: []string{"a", "b"}, Image: "r/t:1", Metrics: ":8080", Health: ":8081", Leader: "ns",
		},
	} {
		if got := strings.Join(c.arguments(), " "); got != want {
			t.Errorf("%+v: got %q, want %q", c, got, want)
		}
	}
}
