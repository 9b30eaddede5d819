package pods

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
)

func TestNamespace(t *testing.T) {
	for _, c := range []struct {
		on, want string
		ok       bool
	}{
		{"k8s", "", true}, {"k8s:shop", "shop", true}, {"k8s:7411", "", false}, {"load1", "load1", false}, {"k8s,load1", "", false}, {"k8s.example:7411", "", false},
	} {
		got, ok := Namespace(strings.Split(c.on, ","))
		if ok != c.ok || ok && got != c.want {
			t.Errorf("--on %s: got %q, %t; want %q, %t", c.on, got, ok, c.want, c.ok)
		}
	}
}

func TestArguments(t *testing.T) {
	f := PodFlags{Image: "mine:1", CPU: "2", Deadline: time.Minute}
	line := strings.Fields("load --on k8s:shop -r 100 --image=mine:1 --agents 3 --targets list.txt --pod-cpu 2 --deadline 1m -o out.json --header --on=x http://svc/ -- --image")
	got, err := f.arguments(line, "shop", 3, Command{
		Reads: []string{"", "list.txt"}, Writes: []string{"out.json", "", "a/b/c.html"}, Targets: []string{"", "http://svc/a", "http://svc/b?c", "svc:8080/", "svc:8080"},
	})
	want := "on -image mine:1 -agents 3 -namespace shop -cpu 2 -deadline 1m0s -file list.txt -folder a/b -target http://svc -target svc:8080 -- " +
		"load -r 100 --targets list.txt -o out.json --header http://svc/ -- --image"
	if err != nil || strings.Join(got, " ") != want {
		t.Errorf("got %q, %v\nwant %q", strings.Join(got, " "), err, want)
	}
	for want, c := range map[string]struct {
		f PodFlags
		c Command
	}{
		"is not a release":                      {},
		"negative":                              {f: PodFlags{Image: "i", Deadline: -1}},
		"/etc/x is outside of this folder":      {f: PodFlags{Image: "i"}, c: Command{Reads: []string{"/etc/x"}}},
		"../out.json is outside of this folder": {f: PodFlags{Image: "i"}, c: Command{Writes: []string{"../out.json"}}},
	} {
		var failure *cli.Failure
		if _, err := c.f.arguments(line, "", 2, c.c); !errors.As(err, &failure) || failure.Status != cli.ExitUsage || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want wrong usage and %q", err, want)
		}
	}
}
