package main

import (
	"bytes"
	"io"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
)

// daemonSet is what the test looks at of one.
type daemonSet struct {
	Kind     string `yaml:"kind"`
	Metadata struct {
		Namespace string            `yaml:"namespace"`
		Labels    map[string]string `yaml:"labels"`
	} `yaml:"metadata"`
	Spec struct {
		Selector struct {
			MatchLabels map[string]string `yaml:"matchLabels"`
		} `yaml:"selector"`
		Template struct {
			Spec struct {
				HostPID         bool             `yaml:"hostPID"`
				HostNetwork     bool             `yaml:"hostNetwork"`
				HostIPC         bool             `yaml:"hostIPC"`
				ServiceAccount  string           `yaml:"serviceAccountName"`
				Token           *bool            `yaml:"automountServiceAccountToken"`
				Containers      []containerSpec  `yaml:"containers"`
				InitContainers  []any            `yaml:"initContainers"`
				SecurityContext map[string]any   `yaml:"securityContext"`
				Volumes         []map[string]any `yaml:"volumes"`
			} `yaml:"spec"`
		} `yaml:"template"`
	} `yaml:"spec"`
}

type containerSpec struct {
	Args     []string `yaml:"args"`
	Command  []string `yaml:"command"`
	Security struct {
		Privileged bool  `yaml:"privileged"`
		Escalation *bool `yaml:"allowPrivilegeEscalation"`
		ReadOnly   bool  `yaml:"readOnlyRootFilesystem"`
		Caps       struct {
			Drop []string `yaml:"drop"`
			Add  []string `yaml:"add"`
		} `yaml:"capabilities"`
	} `yaml:"securityContext"`
	Mounts []mount `yaml:"volumeMounts"`
}

type mount struct {
	Name     string `yaml:"name"`
	Path     string `yaml:"mountPath"`
	ReadOnly bool   `yaml:"readOnly"`
}

// TestWatchManifest wants a DaemonSet whose command line the verb takes, and which asks a
// node for the privileges that it needs and for no other.
func TestWatchManifest(t *testing.T) {
	content, err := os.ReadFile("../../templates/watch.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var d daemonSet
	for dec := yaml.NewDecoder(bytes.NewReader(content)); d.Kind != "DaemonSet"; {
		d = daemonSet{}
		if err := dec.Decode(&d); err != nil {
			t.Fatalf("looking for the DaemonSet: %v", err)
		}
	}
	pod := &d.Spec.Template.Spec
	if len(pod.Containers) != 1 || len(pod.InitContainers) > 0 || len(d.Spec.Selector.MatchLabels) == 0 || d.Metadata.Namespace != "tare" {
		t.Fatalf("got %+v, want one container in the namespace tare", d)
	}
	c := &pod.Containers[0]
	var v verbs
	parser, err := newParser(t.Context(), &v, &cli.Terminal{Out: io.Discard, Err: io.Discard}, func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse(c.Args); err != nil {
		t.Fatalf("%q: %v", c.Args, err)
	}
	if w := &v.Watch; !w.K8s || w.Listen == "" || len(c.Command) > 0 {
		t.Errorf("%q: got %+v, want the node's pods watched and metrics offered", c.Args, w)
	}
	if !pod.HostPID || pod.HostNetwork || pod.HostIPC || pod.ServiceAccount != "" || pod.Token == nil || *pod.Token || pod.SecurityContext != nil {
		t.Errorf("got %+v, want the node's processes and neither its network nor the API", pod)
	}
	s := &c.Security
	if s.Privileged || s.Escalation == nil || *s.Escalation || !s.ReadOnly || !slices.Equal(s.Caps.Drop, []string{"ALL"}) || !slices.Equal(s.Caps.Add, []string{"BPF", "PERFMON", "SYS_PTRACE"}) {
		t.Errorf("got %+v, want three capabilities alone", s)
	}
	for _, volume := range pod.Volumes {
		checkVolume(t, volume, c)
	}
	if len(pod.Volumes) != len(c.Mounts) {
		t.Errorf("%d volumes, %d mounts", len(pod.Volumes), len(c.Mounts))
	}
	keep := path.Clean(v.Watch.Keep)
	if !slices.ContainsFunc(c.Mounts, func(m mount) bool { return !m.ReadOnly && m.Path == keep }) {
		t.Errorf("profiles are kept in %s, which is not mounted to be written", keep)
	}
}

// checkVolume wants a folder of the node's to be one of the kubelet's logs, and read alone.
func checkVolume(t *testing.T, volume map[string]any, c *containerSpec) {
	t.Helper()
	host, ok := volume["hostPath"].(map[string]any)
	if !ok {
		return
	}
	for _, m := range c.Mounts {
		if m.Name != volume["name"] {
			continue
		}
		if !m.ReadOnly || m.Path != host["path"] || !slices.Contains([]string{"/var/log/pods", "/var/log/containers"}, m.Path) {
			t.Errorf("got %v mounted as %+v, want logs to read", host, m)
		}
		return
	}
	t.Errorf("volume %v is not mounted", volume)
}

// TestWatchUnit wants a unit of systemd whose command line the verb takes, which keeps profiles
// where systemd makes a folder, and does not fail when it is stopped.
func TestWatchUnit(t *testing.T) {
	content, err := os.ReadFile("../../templates/tare-watch.service")
	if err != nil {
		t.Fatal(err)
	}
	unit := map[string]string{}
	for line := range strings.Lines(string(content)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(line, "#") {
			unit[key] = value
		}
	}
	args := strings.Fields(unit["ExecStart"])
	if len(args) < 2 || args[0] != "/usr/bin/tare" {
		t.Fatalf("got ExecStart=%s, want the tare of the packages", unit["ExecStart"])
	}
	var v verbs
	parser, err := newParser(t.Context(), &v, &cli.Terminal{Out: io.Discard, Err: io.Discard}, func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse(args[1:]); err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	if w := &v.Watch; !w.AllGo || !w.Quiet || w.Listen == "" || w.Keep != "/var/lib/"+unit["StateDirectory"] {
		t.Errorf("%q: got %+v, want all Go programs watched, metrics offered and profiles in StateDirectory", args, w)
	}
	if got, want := unit["SuccessExitStatus"], strconv.Itoa(cli.ExitInterrupted); got != want {
		t.Errorf("got SuccessExitStatus=%s, want %s", got, want)
	}
}
