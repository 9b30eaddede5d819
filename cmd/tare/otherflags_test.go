package main

import (
	"strings"
	"testing"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
)

// TestMisdirected has what was not understood lead to what may have been meant, and not to
// what merely looks alike.
func TestMisdirected(t *testing.T) {
	for line, want := range map[string]struct{ says, hint string }{
		"http://localhost:8080": {`tare has no command "http://localhost:8080"`, "a verb comes first: `tare load URL` loads it"},
		"localhost:8080/a":      {`tare has no command "localhost:8080/a"`, "a verb comes first"},
		"bench http://x":        {`tare has no command "bench"`, "`tare load URL` loads a service, `tare ab OLD NEW` compares two"},
		"laod http://x":         {`tare has no command "laod", did you mean "load"?`, "see `tare help`"},
		"hlp":                   {`tare has no command "hlp", did you mean "help"?`, "see `tare help`"},
		"xyzzy":                 {`tare has no command "xyzzy"`, "see `tare help`"},
		"advise --for speed":    {"unknown flag --for", "--need says what for"},
		"advise --nede speed":   {`unknown flag --nede, did you mean "--need"?`, "see `tare advise --help`"},
		"help load --rate":      {"unknown flag --rate", "`tare load --help` lists its flags"},
		"ab -d 10s a b":         {"unknown flag -d", "--budget caps the time of the comparison"},
		"ab -n 10 a b":          {"unknown flag -n", "tare ab chooses the number of trials; --budget caps their time"},
		"ab --runs 9 -n 9 a b":  {"unknown flag --runs", "tare ab chooses the number of trials; --budget caps their time"},
		"ab --warmup 3 a b":     {"unknown flag --warmup", "every trial warms its service up"},
		"ab --prepare x a b":    {"unknown flag --prepare", "--prepare of other tools is --before"},
		"ab --export-json f a":  {"unknown flag --export-json", "--export-json of other tools is --json"},
		"ab --min-runs 9 a b":   {"unknown flag --min-runs", "tare ab chooses the number of trials; --budget caps their time"},
		"ab -L gc 1,2 a b":      {"unknown flag -L", "name a service for each setting, as in 'GOGC=50 ./cmd/api' 'GOGC=400 ./cmd/api'"},
		"ab --fail-if p99>1s a": {"unknown flag --fail-if", "--max has the budgets"},
		"ab --budget 20 a b":    {`--budget: expected duration but got "20": time: missing unit in duration "20"`, "a time has a unit, such as 500ms, 20s"},
		"load -m POST -d hi x":  {`--duration: expected duration but got "hi": time: invalid duration "hi"`, "-d (--duration) takes a time such as 500ms, 20s or 1m30s; a body is --body (-b)"},
		"load -u me:pw x":       {"unknown flag -u", "-u of other tools is --user"},
		"load --stages 10s:9 x": {"unknown flag --stages", "--rate ramp:100-5000/30s"},
		"run ./testdata":        {"reading study: open ./testdata: not a regular file", "a study is a YAML file; `tare ab ./testdata@main ./testdata` compares"},
		"run none.yaml":         {"reading study: stat none.yaml: no such file or directory", "`tare list` shows the built-in studies; `tare init` writes a file"},
		"load -s a.lua x":       {"unknown flag -s", "`tare flow FILE` loads with users who follow a file's steps"},
		"report --fromat html":  {"unknown flag --fromat", "the forms are --json, --bench, --html FILE and --markdown FILE"},
		"load --latency x":      {"unknown flag --latency", "percentiles are always shown, so remove --latency"},
		"load --duraton 3s x":   {`unknown flag --duraton, did you mean "--duration"?`, "see `tare load --help`"},
		"agent serve --cetrs x": {`unknown flag --cetrs, did you mean "--certs"?`, "see `tare agent --help`"},
		"gate":                  {`expected "<study|run>"`, "tare gate <study|run> [flags]; `tare gate --help` says more"},
		"whatif --pid 1":        {"missing flags: --owner=NAME", "tare whatif --owner=NAME [<url|pid>] [flags]; `tare whatif --help`"},
		"--nothing":             {"unknown flag --nothing", "see `tare help`"},
		"ab --metric p99 . .":   {`--metric: no metric is called "p99"`, "did you mean response_p99? `tare help study-files` lists the metrics"},
		"gate --max p50<=5% x":  {`--max: no metric is called "p50"`, "did you mean response_p50? "},
	} {
		status, _, said := tare(t, strings.Fields(line)...)
		first, rest, _ := strings.Cut(said, "\n")
		if status != cli.ExitUsage || first != "tare: "+want.says || !strings.HasPrefix(rest, "tare: hint: "+want.hint) {
			t.Errorf("tare %s: got status %d and\n%s\nwant %q and the hint %q", line, status, said, want.says, want.hint)
		}
	}
}
