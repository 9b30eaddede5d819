package tare_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/tarehq/tare"

// arrows says which packages of this module a package may import. The longest
// matching key rules; a value ending in /... stands for everything below it.
// The table is policy: a broken build is no reason to change it.
var arrows = map[string][]string{
	"":                  {},
	"doc":               {},
	"docs":              {},
	"stats/hist":        {},
	"stats/unit":        {},
	"stats":             {"stats/bound", "stats/unit", "stats/hist"},
	"stats/bound":       {"stats/unit"},
	"load/pace":         {},
	"load":              {"load/internal/...", "load/pace", "stats/bound", "stats/hist", "stats/unit"},
	"lab/published":     {"internal/shape"},
	"lab/study":         {"internal/shape", "lab/published", "load/flow/script", "stats/bound", "stats/unit"},
	"load/source":       {},
	"load/flow":         {"load", "load/flow/script", "load/internal/...", "load/pace", "stats", "stats/hist", "stats/unit"},
	"load/flow/script":  {"internal/shape", "load", "load/pace", "stats/unit"},
	"lab/env":           {"internal/cgroup", "internal/task", "stats/unit"},
	"lab/fleet":         {"lab/fleet/wire", "load", "stats/hist", "stats/unit"},
	"lab/fleet/agent":   {"internal/shape", "lab/fleet/wire", "load", "stats/hist"},
	"lab/fleet/certs":   {},
	"lab/fleet/wire":    {"load", "stats/hist"},
	"lab/arm":           {"internal/task", "lab/arm/listening", "lab/study", "lab/variant"},
	"lab/arm/listening": {},
	"lab/variant":       {},
	"lab/answer":        {"lab/study", "stats/unit"},
	"lab/idle":          {"lab/answer", "lab/arm", "lab/study"},
	"lab/inside":        {"cost/pprof", "lab/arm"},
	"lab/visit":         {"stats/hist"},
	"lab/sample":        {"lab/record", "lab/study"},
	"lab/across":        {"lab/study", "lab/verdict", "lab/verdict/estimate", "stats", "stats/unit"},
	"lab/record":        {"cost", "internal/flock", "lab/study", "stats/hist"},
	"lab/tally":         {"lab/record", "stats", "stats/unit"},
	"lab/verdict":       {"cost", "lab/record", "lab/sample", "lab/study", "lab/tally", "lab/verdict/estimate", "stats", "stats/bound", "stats/unit", "stats/hist"},
	"lab/layers":        {"doc", "lab/study", "lab/verdict", "lab/verdict/estimate", "stats", "stats/unit"},
	"lab/report":        {"cost", "doc", "internal/secret", "lab/across", "lab/layers", "lab/report/chart", "lab/tally", "lab/verdict", "lab/verdict/estimate", "lab/record", "lab/study", "stats", "stats/bound", "stats/unit", "stats/hist"},
	"lab/report/chart":  {"stats", "stats/unit"},
	"lab/cireport":      {"lab/comment", "lab/verdict", "stats/bound", "stats/unit"},
	"lab/comment":       {"cost/diff", "doc", "lab/report", "lab/verdict", "stats", "stats/bound", "stats/unit"},
	"lab/captured":      {"cost", "cost/capture", "cost/diff", "cost/exectrace", "cost/pprof", "lab", "lab/record", "lab/study", "stats/unit"},
	"lab/trend":         {"doc", "lab/record", "lab/report/chart", "lab/study", "lab/verdict", "stats", "stats/unit"},
	"lab/generator":     {"lab/answer", "lab/arm", "lab/env", "lab/record", "lab/study", "lab/visit", "stats/unit"},
	"lab/users":         {"lab/study", "load", "load/flow", "load/flow/script", "load/pace", "stats/hist", "stats/unit"},
	"lab":               {"cost/...", "lab/...", "load", "load/pace", "stats", "stats/hist", "stats/unit"},
	"studies":           {"internal/shape", "lab/published", "lab/study"},
	"cost":              {"cost/internal/..."},
	"cost/bpf":          {"cost", "cost/internal/...", "internal/cgroup", "internal/cpus", "internal/task"},
	"cost/bpf/probe":    {"cost", "cost/bpf", "cost/bpf/probe/site", "cost/internal/...", "internal/task", "stats", "stats/unit"},
	"cost/diff":         {"cost", "stats"},
	"cost/doctor":       {"cost", "cost/doctor/...", "stats/unit"},
	"cost/capture":      {"cost", "cost/bpf", "cost/bpf/probe", "cost/doctor/proc", "cost/exectrace", "cost/pprof", "internal/cgroup", "internal/task", "load", "stats/unit"},
	"cost/doctor/proc":  {"internal/cgroup", "internal/task"},
	"cost/pprof":        {"cost", "cost/internal/..."},
	"cost/exectrace":    {"cost"},
	"cost/flame":        {"cost", "stats/unit"},
	"cost/page":         {"cost", "doc", "cost/diff", "cost/flame", "stats/unit"},
	"cost/timeline":     {"cost/exectrace", "doc", "stats/unit"},
	"cost/whatif":       {"cost", "cost/bpf", "cost/bpf/probe", "cost/bpf/reply", "cost/capture", "load", "stats", "stats/hist", "stats/unit"},
	"serve":             {"serve/..."},
	"arms":              {"arms/...", "serve/..."},
	"examples":          {"serve/..."},
	"cmd":               {"..."},

	"web":                     {"cost/capture", "cost/diff", "cost/page", "doc", "lab/captured", "lab/published", "lab/record", "lab/report", "lab/study", "lab/verdict", "stats/unit", "studies", "web/history", "web/links", "web/trend", "web/upload"},
	"web/links":               {"doc"},
	"web/trend":               {"doc", "lab/report/chart", "lab/study", "lab/verdict", "stats", "stats/unit", "web/history", "web/history/change", "web/links"},
	"web/cmd":                 {"web", "web/history"},
	"web/history":             {"lab/record", "lab/report", "lab/study", "lab/trend", "lab/verdict", "lab/verdict/estimate", "studies"},
	"web/history/change":      {"stats"},
	"web/history/historytest": {"cost", "cost/pprof", "lab/record", "lab/study"},
	"web/upload":              {},

	"kube/api":               {},
	"kube/carry":             {"kube/parcel", "lab/fleet/wire"},
	"kube/chart":             {},
	"kube/cmd/tare-kube":     {"kube/...", "lab/fleet/certs"},
	"kube/jobs":              {"kube/carry", "kube/parcel", "lab/fleet/certs", "lab/fleet/wire", "load"},
	"kube/operator":          {"kube/api/v1alpha1", "kube/jobs", "kube/operator/headline", "kube/parcel", "stats/unit"},
	"kube/parcel":            {},
	"kube/operator/headline": {"stats/unit"},
	"kube/testcluster":       {},

	// Packages of the command: no verb imports another.
	"cmd/tare/internal/adviseverb":    {"cmd/tare/internal/cli", "cmd/tare/internal/runs", "doc", "internal/task", "lab/record", "lab/study", "lab/verdict", "stats/unit", "studies"},
	"cmd/tare/internal/ab":            {"cmd/tare/internal/cli", "cmd/tare/internal/compose", "cmd/tare/internal/pods", "cmd/tare/internal/publish", "cmd/tare/internal/remote", "cmd/tare/internal/runs", "lab", "lab/...", "stats/...", "stats"},
	"cmd/tare/internal/agentverb":     {"cmd/tare/internal/cli", "lab/fleet/..."},
	"cmd/tare/internal/calibrate":     {"cmd/tare/internal/cli", "cmd/tare/internal/noise", "cmd/tare/internal/runs", "doc", "lab/record", "lab/study", "lab/verdict", "stats", "stats/unit", "studies"},
	"cmd/tare/internal/claims":        {"cmd/tare/internal/cli", "cmd/tare/internal/runs", "doc", "lab/published", "lab/record", "lab/study", "lab/verdict", "stats/unit", "studies"},
	"cmd/tare/internal/cli":           {"cost", "cost/bpf", "cost/capture", "cost/pprof", "doc", "load", "load/pace", "stats/unit"},
	"cmd/tare/internal/cli/clitest":   {"doc"},
	"cmd/tare/internal/companion":     {"cmd/tare/internal/cli", "cmd/tare/internal/source", "lab/arm", "lab/study"},
	"cmd/tare/internal/compose":       {"cmd/tare/internal/cli", "internal/secret", "lab", "lab/arm", "lab/study", "load/source"},
	"cmd/tare/internal/costverb":      {"cmd/tare/internal/cli", "cmd/tare/internal/runs", "cost", "cost/bpf", "cost/bpf/probe", "cost/capture", "cost/flame", "cost/page", "doc", "lab/record", "stats/unit"},
	"cmd/tare/internal/diffverb":      {"cmd/tare/internal/cli", "cmd/tare/internal/runs", "cost", "cost/capture", "cost/diff", "cost/page", "cost/pprof", "doc", "lab", "lab/record", "lab/tally", "stats/unit"},
	"cmd/tare/internal/doctorverb":    {"cmd/tare/internal/cli", "cmd/tare/internal/runs", "cost", "cost/capture", "cost/doctor", "cost/doctor/compiler", "cost/doctor/proc", "cost/pprof", "doc", "lab/record", "stats/unit"},
	"cmd/tare/internal/flameverb":     {"cmd/tare/internal/cli", "cost", "cost/capture", "cost/flame", "cost/page", "doc", "stats/unit"},
	"cmd/tare/internal/flowverb":      {"cmd/tare/internal/cli", "cmd/tare/internal/pods", "doc", "internal/task", "load", "load/flow", "load/flow/script", "load/pace", "load/source", "stats/bound", "stats/hist", "stats/unit"},
	"cmd/tare/internal/forge":         {},
	"cmd/tare/internal/gate":          {"cmd/tare/internal/cli", "cmd/tare/internal/pods", "cmd/tare/internal/publish", "cmd/tare/internal/remote", "cmd/tare/internal/runs", "lab", "lab/comment", "lab/record", "lab/study", "lab/verdict", "stats", "stats/bound", "stats/unit"},
	"cmd/tare/internal/helpverb":      {"cmd/tare/internal/cli", "cmd/tare/internal/helpverb/...", "doc", "docs", "internal/shape"},
	"cmd/tare/internal/helpverb/site": {"docs"},
	"cmd/tare/internal/initverb":      {"cmd/tare/internal/cli", "cmd/tare/internal/compose", "cmd/tare/internal/runs", "lab", "lab/report", "lab/study", "lab/variant"},
	"cmd/tare/internal/loadverb":      {"cmd/tare/internal/cli", "cmd/tare/internal/loadverb/...", "cmd/tare/internal/pods", "cmd/tare/internal/remote", "doc", "load", "load/pace", "load/source", "stats/bound", "stats/hist", "stats/unit"},
	"cmd/tare/internal/manverb":       {"cmd/tare/internal/cli", "internal/shape"},
	"cmd/tare/internal/noise":         {"cmd/tare/internal/cli", "lab/record", "stats", "stats/unit"},
	"cmd/tare/internal/operatorverb":  {"cmd/tare/internal/cli", "cmd/tare/internal/companion"},
	"cmd/tare/internal/pods":          {"cmd/tare/internal/cli", "cmd/tare/internal/companion"},
	"cmd/tare/internal/publish":       {"cmd/tare/internal/cli", "cmd/tare/internal/forge", "cmd/tare/internal/runs", "doc", "lab/cireport", "lab/comment", "lab/record", "lab/study", "lab/verdict", "stats/bound"},
	"cmd/tare/internal/proxyverb":     {"cmd/tare/internal/cli", "cmd/tare/internal/companion", "internal/shape"},
	"cmd/tare/internal/remote":        {"cmd/tare/internal/cli", "cmd/tare/internal/pods", "cmd/tare/internal/runs", "doc", "lab/fleet", "lab/fleet/certs", "load", "stats/hist", "stats/unit"},
	"cmd/tare/internal/runs":          {"cmd/tare/internal/cli", "cmd/tare/internal/noise", "cmd/tare/internal/source", "cost", "cost/capture", "cost/diff", "cost/exectrace", "cost/pprof", "doc", "internal/shape", "lab", "lab/...", "stats", "stats/bound", "stats/unit", "studies"},
	"cmd/tare/internal/runs/runstest": {"lab/record", "studies"},
	"cmd/tare/internal/runverb":       {"cmd/tare/internal/cli", "cmd/tare/internal/pods", "cmd/tare/internal/publish", "cmd/tare/internal/remote", "cmd/tare/internal/runs", "lab", "lab/record", "lab/study", "lab/verdict", "stats/bound", "stats/unit", "studies"},
	"cmd/tare/internal/source":        {"cmd/tare/internal/cli"},
	"cmd/tare/internal/traceverb":     {"cmd/tare/internal/cli", "cost/capture", "cost/exectrace", "cost/pprof", "cost/timeline", "doc", "stats/unit"},
	"cmd/tare/internal/trendverb":     {"cmd/tare/internal/cli", "cmd/tare/internal/runs", "doc", "lab/record", "lab/trend", "lab/verdict"},
	"cmd/tare/internal/webverb":       {"cmd/tare/internal/cli", "cmd/tare/internal/companion"},
	"cmd/tare/internal/whatifverb":    {"cmd/tare/internal/cli", "cost/whatif", "doc", "stats/unit"},
	"arms/rivals/internal/fastloop":   {"arms/arm"},
	"arms/rivals/internal/spans":      {},

	"arms/rivals/internal/orders/ordersconnect": {"arms/rivals/internal/orders"},
	"arms/rivals/internal/orders/orderstest":    {"arms/rivals/internal/orders"},

	"load/internal/block": {"load/internal/h2", "load/internal/template"},
	"load/internal/dial":  {"load/internal/http1", "load/internal/http3", "load/internal/proxy", "load/internal/wire"},
	"load/internal/feed":  {},
	"load/internal/http1": {"load/internal/check"},

	"cmd/tare/internal/loadverb/export":   {"cmd/tare/internal/cli", "cmd/tare/internal/telemetry", "load"},
	"cmd/tare/internal/loadverb/journal":  {"load"},
	"cmd/tare/internal/loadverb/redirect": {"internal/secret", "load"},

	"cost/internal/framework": {"cost/internal/symbol"},
	"cost/internal/kallsyms":  {"cost"},

	"cost/bpf/probe/site": {},

	"serve/internal/listener": {"serve/internal/sys"},
	"serve/internal/wrapped":  {"serve/internal/sys"},
	"serve/internal/reply":    {"serve/internal/http1"},

	"serve/proxy/internal/news":    {"serve/proxy/internal/fields"},
	"serve/proxy/internal/trailer": {"serve/internal/http1", "serve/proxy/internal/fields"},

	"internal/shape":    {"stats/bound", "stats/unit"},
	"internal/secret":   {},
	"internal/cgroup":   {},
	"internal/cpus":     {},
	"internal/flock":    {},
	"internal/task":     {},
	"internal/chromium": {}, // for tests
	"internal/forward":  {}, // for tests
	"internal/injected": {},
	"internal/sockets":  {},
	"internal/toggle":   {"stats"},

	// What tare watch is made of.
	"cost/watch":        {"cost", "cost/bpf", "cost/bpf/probe", "cost/bpf/reply", "cost/capture", "cost/watch/past", "cost/watch/pods", "internal/cgroup", "internal/task"},
	"cost/watch/change": {"cost", "cost/diff"},
	"cost/watch/past":   {"cost"},
	"cost/watch/pods":   {"internal/cgroup"},
	"cost/watch/ring":   {"internal/flock"},
	"cost/watch/total":  {"cost", "cost/bpf/reply", "cost/watch"},

	"cmd/tare/internal/telemetry":        {"cmd/tare/internal/cli", "load"},
	"cmd/tare/internal/watchverb":        {"cmd/tare/internal/cli", "cmd/tare/internal/telemetry", "cmd/tare/internal/watchverb/upload", "cost", "cost/bpf", "cost/bpf/reply", "cost/page", "cost/pprof", "cost/watch", "cost/watch/...", "doc", "internal/cgroup", "stats/unit"},
	"cmd/tare/internal/watchverb/upload": {"cmd/tare/internal/telemetry", "cost"},
}

// entries says where an outside module may enter; a value ending in /... stands
// for one source and what lies below it. golang.org/x/sys counts as the standard
// library's own extension. What arms/rivals requires is not bounded, nor what examples do:
// they are programs of users.
var entries = map[string]string{
	"github.com/alecthomas/kong":           "cmd/tare/...",
	"github.com/clipperhouse/displaywidth": "doc",
	"charm.land/bubbletea/v2":              "cmd/tare/...",
	"charm.land/lipgloss/v2":               "cmd/tare/...",
	"golang.org/x/term":                    "cmd/tare/...",
	"github.com/goccy/go-yaml":             "internal/shape",
	"golang.org/x/net":                     "load/...",
	"golang.org/x/net/dns":                 "kube/testcluster", // for tests
	"github.com/google/pprof":              "cost/pprof",
	"golang.org/x/exp":                     "cost/exectrace",
	"github.com/cilium/ebpf":               "cost/bpf/...",
	"golang.org/x/arch":                    "cost/bpf/probe/site",
	"github.com/chromedp":                  "internal/chromium",
	"golang.org/x/mod":                     "cmd/tare/internal/source",
	"golang.org/x/sys":                     "*",
	"github.com/prometheus/procfs":         "lab/arm/listening",
	"github.com/quic-go/quic-go":           "load/internal/http3",
	"mvdan.cc/sh/v3":                       "cmd/tare/internal/compose",
	"github.com/getkin/kin-openapi":        "load/source",
	"github.com/klauspost/compress":        "serve/compress/...",
	"github.com/andybalholm/brotli":        "serve/compress",
	"github.com/yuin/goldmark":             "cmd/tare/internal/helpverb/...",
	"github.com/oschwald/maxminddb-golang": "serve/proxy/gateway/region",
	"github.com/redis/rueidis":             "serve/redislimit",
	"go.opentelemetry.io/otel":             "serve/tracing",
	"modernc.org/sqlite":                   "web/history",
	"github.com/jackc/pgx":                 "web/history",
	"github.com/go-logr/logr":              "kube/...",
	"github.com/prometheus/client_golang":  "kube/operator",
	"github.com/robfig/cron":               "kube/operator",
	"k8s.io":                               "kube/...",
	"sigs.k8s.io":                          "kube/...",
}

// nouns that say nothing about what a package holds.
var forbidden = []string{"util", "utils", "common", "helper", "helpers", "types", "pkg", "core", "misc", "base", "shared", "lib"}

type pkg struct {
	ImportPath, Name, Doc, Dir string
	GoFiles, Imports           []string
}

func (p pkg) rel() string { return strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/") }

// packages are those of all modules.
func packages(t *testing.T) []pkg {
	t.Helper()
	var all []pkg
	for _, dir := range moduleDirs {
		cmd := exec.Command("go", "list", "-json=ImportPath,Name,Doc,Dir,GoFiles,Imports", "./...")
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off")
		out, err := cmd.Output()
		if err != nil {
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				t.Fatalf("listing packages of %s: %v\n%s", dir, err, exit.Stderr)
			}
			t.Fatalf("listing packages of %s: %v", dir, err)
		}
		for dec := json.NewDecoder(bytes.NewReader(out)); ; {
			var p pkg
			err := dec.Decode(&p)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("reading go list: %v", err)
			}
			all = append(all, p)
		}
	}
	return all
}

func rule(rel string) ([]string, bool) {
	for key := rel; ; key = key[:max(0, strings.LastIndexByte(key, '/'))] {
		if allowed, ok := arrows[key]; ok {
			return allowed, key != "" || rel == ""
		}
		if key == "" {
			return nil, false
		}
	}
}

func matches(pattern, rel string) bool {
	if below, ok := strings.CutSuffix(pattern, "..."); ok {
		return strings.HasPrefix(rel+"/", below)
	}
	return pattern == rel
}

func TestArrows(t *testing.T) {
	for _, p := range packages(t) {
		if _, ruled := arrows[p.rel()]; !ruled && strings.Contains(p.rel(), "/internal/") {
			for _, imp := range p.Imports {
				if strings.HasPrefix(imp, module) {
					t.Errorf("%s imports %s: an internal package without a row imports nothing of ours", p.rel(), imp)
				}
			}
			continue
		}
		allowed, ok := rule(p.rel())
		if !ok {
			t.Errorf("%s: no row in the table of arrows", p.rel())
			continue
		}
		for _, imp := range p.Imports {
			if imp != module && !strings.HasPrefix(imp, module+"/") {
				continue
			}
			rel := strings.TrimPrefix(imp, module+"/")
			if !slices.ContainsFunc(allowed, func(a string) bool { return matches(a, rel) }) {
				t.Errorf("%s imports %s: not an allowed arrow (it may import %v)", p.rel(), rel, allowed)
			}
		}
	}
}

func TestOutsideModulesEnterOnce(t *testing.T) {
	for _, p := range packages(t) {
		for _, imp := range p.Imports {
			if first, _, _ := strings.Cut(imp, "/"); !strings.Contains(first, ".") || strings.HasPrefix(imp, module) {
				continue
			}
			var at, longest string
			for mod, where := range entries {
				if (imp == mod || strings.HasPrefix(imp, mod+"/")) && len(mod) > len(longest) {
					at, longest = where, mod
				}
			}
			if at != "*" && !matches(at, p.rel()) && !strings.HasPrefix(p.rel(), "arms/rivals/") && !strings.HasPrefix(p.rel(), "examples/") {
				t.Errorf("%s imports %s: that module may enter only at %q", p.rel(), imp, at)
			}
		}
	}
}

func TestPackageNamesAndComments(t *testing.T) {
	for _, p := range packages(t) {
		if slices.Contains(forbidden, p.Name) || slices.Contains(forbidden, filepath.Base(p.Dir)) {
			t.Errorf("%s: %q says nothing about what the package holds", p.rel(), p.Name)
		}
		want := "Package " + p.Name + " "
		if p.Name == "main" {
			want = "Command " + filepath.Base(p.Dir) + " "
		}
		if !strings.HasPrefix(p.Doc, want) {
			t.Errorf("%s: package comment is %q, want it to begin with %q", p.rel(), p.Doc, want)
		}
		if p.Name != "main" && p.rel() != "" && p.Name != filepath.Base(p.Dir) {
			t.Errorf("%s: package %s lies in directory %s", p.rel(), p.Name, filepath.Base(p.Dir))
		}
	}
}

// TestSource keeps the rules that can be read off the syntax tree.
func TestSource(t *testing.T) {
	unsafeAt := map[string]string{} // shelf → the one package
	for _, p := range packages(t) {
		shelf, _, _ := strings.Cut(p.rel(), "/")
		if slices.Contains(p.Imports, "unsafe") {
			if prev, ok := unsafeAt[shelf]; ok || !strings.Contains(p.rel(), "internal/") {
				t.Errorf("%s imports unsafe (as does %q): one package a shelf, under internal", p.rel(), prev)
			}
			unsafeAt[shelf] = p.rel()
		}
		for _, name := range p.GoFiles {
			checkFile(t, p, filepath.Join(p.Dir, name))
		}
	}
}

// mostLines bounds the Go code of a package, tests and generated code excluded.
const mostLines = 1500

// ceilings are the packages that are larger. Their numbers may only fall: each asks to
// become two packages, or less code.
var ceilings = map[string]int{
	"arms/rivals/compat":         1640,
	"cmd/tare/internal/loadverb": 1700,
	"cost/bpf":                   1590,
	"cost/bpf/probe":             2220,
	"cost/doctor":                2140,
	"cost/exectrace":             2000,
	"lab":                        3300,
	"lab/arm":                    2550,
	"lab/env":                    1670,
	"lab/report":                 2610,
	"lab/study":                  2250,
	"lab/verdict":                3430,
	"load":                       5660,
	"serve":                      5220,
	"serve/chain":                1880,
	"serve/router":               1540,
	"stats":                      1540,
}

// families are files of one package that share a name's beginning, and are four or more:
// each asks to become a package.
var families []string

// TestSizes bounds packages and families of files. Files for Linux alone count too, so it
// runs there.
func TestSizes(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED: sizes are those of Linux")
	}
	var found []string
	for _, p := range packages(t) {
		lines, stems := 0, []string{}
		for _, name := range p.GoFiles {
			content, err := os.ReadFile(filepath.Join(p.Dir, name))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.HasPrefix(content, []byte("// Code generated")) {
				lines += bytes.Count(content, []byte("\n"))
				stem, _, _ := strings.Cut(strings.TrimSuffix(name, ".go"), "_")
				stems = append(stems, stem)
			}
		}
		checkSize(t, p.rel(), lines)
		for _, stem := range stems {
			n := 0
			for _, other := range stems {
				if strings.HasPrefix(other, stem) {
					n++
				}
			}
			if family := p.rel() + "/" + stem; n >= 4 && !slices.Contains(found, family) {
				found = append(found, family)
			}
		}
	}
	slices.Sort(found)
	if !slices.Equal(found, families) {
		t.Errorf("families of four files and more:\n got %q\nwant %q\na new one is a package that was not made; take one that is gone off the list", found, families)
	}
}

func checkSize(t *testing.T, rel string, lines int) {
	t.Helper()
	ceiling, listed := ceilings[rel]
	switch {
	case !listed && lines > mostLines:
		t.Errorf("%s has %d lines, more than %d: make it two packages, or less code", rel, lines, mostLines)
	case listed && lines > ceiling:
		t.Errorf("%s has %d lines, more than its ceiling of %d", rel, lines, ceiling)
	case listed && lines < ceiling-150:
		t.Errorf("%s has %d lines, far below its ceiling of %d: lower that", rel, lines, ceiling)
	}
}

func checkFile(t *testing.T, p pkg, path string) {
	t.Helper()
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	if ast.IsGenerated(f) {
		return // its form is its generator's
	}
	name := p.rel() + "/" + filepath.Base(path)
	if n := fset.File(f.Pos()).LineCount(); n > 800 {
		t.Errorf("%s has %d lines, more than 800", name, n)
	}
	for _, decl := range f.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok {
			continue
		}
		checkFunc(t, name, fset, fn)
	}
}

func checkFunc(t *testing.T, file string, fset *token.FileSet, fn *ast.FuncDecl) {
	t.Helper()
	if fn.Name.Name == "init" && fn.Recv == nil {
		t.Errorf("%s: func init", file)
	}
	if strings.HasPrefix(fn.Name.Name, "Get") && fn.Name.Name != "Get" {
		t.Errorf("%s: %s: no Get in names", file, fn.Name.Name)
	}
	if lines := fset.Position(fn.End()).Line - fset.Position(fn.Pos()).Line; lines > 100 {
		t.Errorf("%s: %s has %d lines, more than 100", file, fn.Name.Name, lines)
	}
	params := 0
	for _, field := range fn.Type.Params.List {
		if sel, ok := field.Type.(*ast.SelectorExpr); ok && sel.Sel.Name == "Context" {
			continue
		}
		params += max(1, len(field.Names))
	}
	if params > 4 {
		t.Errorf("%s: %s takes %d parameters besides the context, more than 4", file, fn.Name.Name, params)
	}
}

// TestNoReturnProbes keeps return probes out: they change return addresses on the
// stack, which Go moves and reads, so that programs under them crash. Looked at are
// calls in Go, and sections of the kernel's programs, in source and as built.
func TestNoReturnProbes(t *testing.T) {
	programs := 0
	for _, p := range packages(t) {
		files, err := os.ReadDir(p.Dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			path := filepath.Join(p.Dir, file.Name())
			switch filepath.Ext(path) {
			case ".go":
				noReturnProbe(t, path)
			case ".c", ".h", ".o", ".s":
				programs++
				content, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if bytes.Contains(content, []byte("uretprobe")) {
					t.Errorf("%s has a return probe", path)
				}
			}
		}
	}
	if programs < 6 {
		t.Errorf("%d files of the kernel's programs were looked at, want at least 6", programs)
	}
}

// noReturnProbe fails the test if a file of Go, for whatever system, places one.
func noReturnProbe(t *testing.T, path string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok && strings.HasPrefix(sel.Sel.Name, "Uretprobe") {
			t.Errorf("%s calls %s: return probes kill Go programs", path, sel.Sel.Name)
		}
		return true
	})
}
