package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestRefused gives command lines that end before anything is created.
func TestRefused(t *testing.T) {
	t.Chdir(t.TempDir())
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	config := `{"apiVersion": "v1", "kind": "Config", "current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c"}}],
		"clusters": [{"name": "c", "cluster": {"server": "` + closed.URL + `"}}]}`
	if err := os.WriteFile("kubeconfig", []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("broken", []byte("["), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args, config string
		status       int
		want         string
	}{
		{"", "", 2, "tare load --on k8s"},
		{"off", "", 2, "tare load --on k8s"},
		{"on -image i", "", 2, "no command is given"},
		{"on -image i -cpu many -- load", "", 2, `--pod-cpu: "many" is not a quantity`},
		{"on -image i -memory 0 -- load", "", 2, `--pod-memory: "0" is not a quantity`},
		{"on -image i -file none.yaml -- run none.yaml", "", 2, "none.yaml"},
		{"on -image i -- load", "broken", 1, "finding the cluster"},
		{"on -image i -- load", "kubeconfig", 1, "connecting to the cluster at " + closed.URL},
		{"operator -none", "", 2, "-none"},
		{"operator here", "", 2, "operator takes flags alone"},
		{"operator", "broken", 1, "finding the cluster"},
		{"operator", "kubeconfig", 1, "connection refused"},
		{"carry", "", 1, "no program is named"},
		{"carry -secret none -certs certs -- tare", "", 1, "reading what to do"},
		{"agent -secret none", "", 1, "one program must be named"},
		{"offer -secret none -certs other", "", 1, "agent.key"},
	} {
		t.Setenv("KUBECONFIG", filepath.Join(".", c.config))
		var out, errs bytes.Buffer
		if status := run(t.Context(), strings.Fields(c.args), &out, &errs); status != c.status || !strings.Contains(errs.String(), c.want) || out.Len() > 0 {
			t.Errorf("tare-kube %s: status %d, %q and %q; want %d and %q", c.args, status, &out, &errs, c.status, c.want)
		}
	}
}

func TestManifests(t *testing.T) {
	for _, c := range []struct{ args, image string }{{"operator -manifests", "ghcr.io/tarehq/tare:latest"}, {"operator -manifests -image mine:1", "mine:1"}} {
		var out, errs bytes.Buffer
		if status := run(t.Context(), strings.Fields(c.args), &out, &errs); status != 0 || strings.Count(out.String(), "kind: CustomResourceDefinition") != 2 {
			t.Errorf("%s: status %d, %q and %.200q, want the definitions of two kinds", c.args, status, &errs, &out)
		}
		images := regexp.MustCompile(`image[:=] ?(\S+:\S+)`).FindAllStringSubmatch(out.String(), -1)
		if len(images) != 2 || images[0][1] != c.image || images[1][1] != c.image {
			t.Errorf("%s: got the images %q, want %s of the operator and of runs", c.args, images, c.image)
		}
	}
}
