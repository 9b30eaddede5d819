package main

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

var update = flag.Bool("update", false, "write the generated page of flags anew")

// flagRow is a flag as some verbs have it.
type flagRow struct {
	long, name, initial string // name is as it is typed, with its short form
	verbs               []string
}

// flagRows are all flags, those of one name and default in one row.
func flagRows(verbs []*kong.Node) []flagRow {
	var rows []flagRow
	for _, verb := range verbs {
		for _, f := range verb.Flags {
			if f.Name == "help" {
				continue
			}
			row := flagRow{long: f.Name, name: "`--" + f.Name + "`", initial: cmp.Or(f.Default, "–"), verbs: []string{verb.Name}}
			if f.Short != 0 {
				row.name = fmt.Sprintf("`-%c`, %s", f.Short, row.name)
			}
			i := slices.IndexFunc(rows, func(r flagRow) bool { return r.name == row.name && r.initial == row.initial })
			if i < 0 {
				rows = append(rows, row)
				continue
			}
			rows[i].verbs = append(rows[i].verbs, verb.Name)
		}
	}
	slices.SortStableFunc(rows, func(a, b flagRow) int {
		return cmp.Or(cmp.Compare(a.long, b.long), cmp.Compare(len(b.verbs), len(a.verbs)))
	})
	return rows
}

// otherwise says why flags of one name have another default, or meaning, in some verb.
var otherwise = map[string]string{
	"blocks":      "`calibrate` has no study that says how many",
	"budget":      "`ab` has no study that says how long; `watch` bounds what it uses itself",
	"connections": "`load --rate` opens more, up to 4,096",
	"for":         "`whatif --for` bounds all windows of a comparison; `watch` has no end",
	"from":        "`ab` and `flow` read requests, `doctor` evidence, `selftest` its studies",
	"image":       "verbs with `--on` name that of their pods, `operator` that of runs whose resource names none",
	"hz":          "`watch` samples for ever, so less often",
	"listen":      "`web` is a page to look at, `watch` prints and offers metrics where asked to",
	"on":          "`flow` takes `k8s` alone: its users come from one process",
	"output":      "the ending of `flame --output` says what to write; `init` writes a study, `man` a folder",
	"rate":        "`ab` also takes a share of what the slowest service can do",
	"save":        "`ab` saves the study, `doctor` the evidence, `trace` the trace",
	"study":       "`trend` takes a study's name, `cost` a run",
	"requests":    "`load` sends this many; `cost` divides by the number that others sent",
	"why":         "`ab` looks for owners that differ; `env` gives reasons",
}

// flagsPage is the text of docs/flags.md.
func flagsPage(rows []flagRow) string {
	var shared, apart strings.Builder
	for _, r := range rows {
		line := fmt.Sprintf("| %s | %s | %s |", r.name, r.initial, strings.Join(r.verbs, ", "))
		switch why := otherwise[r.long]; {
		case why != "":
			fmt.Fprintf(&apart, "%s %s |\n", line, why)
		case len(r.verbs) > 1:
			fmt.Fprintln(&shared, line)
		}
	}
	return `# Flags by verb

This page is generated: ` + "`go test ./cmd/tare -run FlagsPage -update`" + ` writes it.

Every verb that looks at a service takes a URL, a process (` + "`4711` or `--pid 4711`" + `),
` + "`--cgroup` or `--container`" + `. ` + "`tare diff`" + ` takes two services, each as one word:
` + "`localhost:6060`, `4711`, `cgroup:PATH` or `container:ID`" + `.

## Flags of several verbs

Such a flag has one meaning and one default. ` + "`tare VERB --help`" + ` lists all flags of a verb.

| flag | default | verbs |
|---|---|---|
` + shared.String() + `
## Flags with one name and several meanings or defaults

` + "`-q` is `--quick` in `run`, `gate` and `selftest`, and `--quiet` in `load`, `flow` and `watch`." + `

| flag | default | verbs | why |
|---|---|---|---|
` + apart.String()
}

// TestFlagsPage has docs/flags.md tell what the verbs take.
func TestFlagsPage(t *testing.T) {
	const page = "../../docs/flags.md"
	want := flagsPage(flagRows(model(t).Children))
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(page); err != nil || string(got) != want {
		t.Errorf("%v: docs/flags.md is stale: write it by `go test ./cmd/tare -run FlagsPage -update`", err)
	}
}

// TestFlagsAgree has a flag of several verbs be one flag: one short form and one default.
func TestFlagsAgree(t *testing.T) {
	at := map[string]flagRow{}
	for _, r := range flagRows(model(t).Children) {
		if other, ok := at[r.long]; ok && otherwise[r.long] == "" {
			t.Errorf("%s is %q with default %q in %v, and %q with default %q in %v", r.long, r.name, r.initial, r.verbs, other.name, other.initial, other.verbs)
		}
		at[r.long] = r
	}
}
