package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/internal/shape"

	"github.com/alecthomas/kong"
)

// otherFlags are flags of wrk, wrk2, hey, oha, ab, k6, curl and hyperfine, and what they are called here.
func otherFlags() map[string]string {
	return map[string]string{
		"-z": "duration", "-X": "method", "-R": "rate", "-D": "body-file", "-Z": "body-file", "-p": "streams",
		"--vus": "connections", "--concurrency": "connections", "--rps": "rate", "--qps": "rate", "--query-per-second": "rate",
		"--iterations": "requests", "--disable-keepalive": "new-connections", "--data": "body", "--data-file": "body-file",
		"--cacert": "ca", "-x": "proxy", "--unix-socket": "unix", "-a": "user", "-A": "header", "--http-version": "http2", "--request": "method", "--parallel": "streams",
		"--prepare": "before", "--setup": "before", "--cleanup": "after", "--export-json": "json", "--export-markdown": "markdown", "--summary-export": "json",
		"-u": "user", "--threshold": "fail-if", "--thresholds": "fail-if", "--out": "output", "--h2": "http2", "--location": "follow",
	}
}

// needless are flags that a verb does without, and why; hyperfine has some of them.
func needless(verb string) map[string]string {
	const (
		budget = "--budget caps the time of the comparison"
		trials = "tare ab chooses the number of trials; --budget caps their time"
		warm   = "every trial warms its service up"
		script = "`tare flow FILE` loads with users who follow a file's steps"
		each   = "name a service for each setting, as in 'GOGC=50 ./cmd/api' 'GOGC=400 ./cmd/api'"
		method = "--path has the method, as in --path 'POST /orders'"
		basic  = "-H 'Authorization: Basic …' sends a name and password"
		forms  = "the forms are --json, --bench, --html FILE and --markdown FILE"
	)
	return map[string]map[string]string{
		"ab": {
			"-d": budget, "-t": budget, "-z": budget, "--duration": budget, "-n": trials, "--requests": trials, "--runs": trials, "--blocks": trials,
			"--iterations": trials, "--min-runs": trials, "--max-runs": trials, "-w": warm, "--warmup": warm,
			"-L": each, "--parameter-list": each, "-P": each, "--parameter-scan": each, "-m": method, "--method": method, "-X": method,
			"-u": basic, "-a": basic, "--user": basic, "--fail-if": "--max has the budgets, such as 'response_p99<=5%'",
			"--follow": "--path names where a redirect leads", "--location": "--path names where a redirect leads",
		},
		"advise": {"--for": "--need says what for"},
		"load": {
			"-L": "percentiles are always shown, so remove -L", "--latency": "percentiles are always shown, so remove --latency",
			"-s": script, "--script": script, "--stages": "--rate ramp:100-5000/30s or steps:100,200/10s changes the rate as it runs",
		},
		"report": {"-f": forms, "--format": forms, "--output": forms, "-o": forms},
	}[verb]
}

// otherVerbs are words of other tools, and which verb does that here.
func otherVerbs() map[string]string {
	const (
		loads = "`tare load URL` loads a service, `tare ab OLD NEW` compares two"
		costs = "`tare cost URL` shows what each part of a running service costs"
	)
	return map[string]string{
		"bench": loads, "benchmark": loads, "attack": loads, "stress": loads, "test": loads,
		"profile": costs, "pprof": costs, "top": costs,
	}
}

// address is what looks like a URL or like a host and its port.
var address = regexp.MustCompile(`^(https?://|[\w.-]*:\d+)`)

// explainUsage is why a command line was not understood, with what may have been meant.
func explainUsage(verbs []*kong.Node, args []string, err error) error {
	text := err.Error()
	if cut, _, many := strings.Cut(text, ", did you mean one of"); many {
		text = cut // every short flag is near a short one
	}
	if i := slices.IndexFunc(verbs, func(n *kong.Node) bool { return n.Name == args[0] }); i >= 0 {
		hint := cmp.Or(suggestFlags(verbs[i], args[1:]), explainTime(args[0], text), explainMissing(verbs[i], text))
		if args[0] == "help" && len(args) > 2 {
			hint = fmt.Sprintf("`tare %s --help` lists its flags", args[1])
		}
		return cli.Usage(cmp.Or(hint, fmt.Sprintf("see `tare %s --help`", args[0])), errors.New(nearFlag(verbs[i], text)))
	}
	if strings.HasPrefix(args[0], "-") {
		return cli.Usage("see `tare help`", errors.New(text))
	}
	text = fmt.Sprintf("tare has no command %q", args[0])
	if address.MatchString(args[0]) {
		return cli.Usage("a verb comes first: `tare load URL` loads it, `tare cost URL` shows what each of its parts costs", errors.New(text))
	}
	names := make([]string, len(verbs))
	for i, n := range verbs {
		names[i] = n.Name
	}
	near := shape.Nearest(args[0], names)
	if near == "" && strings.HasPrefix(args[0], "h") { // no verb begins so
		near = "help"
	}
	hint := otherVerbs()[args[0]]
	if near != "" && hint == "" {
		text += fmt.Sprintf(", did you mean %q?", near)
	}
	return cli.Usage(cmp.Or(hint, "see `tare help`"), errors.New(text))
}

// explainMissing is how a verb is called, where it lacks an argument or a flag.
func explainMissing(verb *kong.Node, text string) string {
	if strings.HasPrefix(text, "expected ") || strings.HasPrefix(text, "missing flags") {
		return fmt.Sprintf("tare %s; `tare %s --help` says more", verb.Summary(), verb.Name)
	}
	return ""
}

// explainTime is how a time is written, where one was not understood.
func explainTime(verb, text string) string {
	switch {
	case !strings.Contains(text, "expected duration"):
		return ""
	case verb == "load" && strings.HasPrefix(text, "--duration"):
		return "-d (--duration) takes a time such as 500ms, 20s or 1m30s; a body is --body (-b)"
	}
	return "a time has a unit, such as 500ms, 20s or 1m30s"
}

// nearFlag is kong's word on an unknown flag with the flag that it resembles. Kong takes
// --for for --dir.
func nearFlag(verb *kong.Node, text string) string {
	said, _, _ := strings.Cut(text, ", did you mean")
	name, unknown := strings.CutPrefix(said, "unknown flag --")
	if !unknown {
		return text
	}
	var names []string
	for _, n := range append([]*kong.Node{verb}, verb.Children...) {
		for _, f := range n.Flags {
			names = append(names, f.Name)
		}
	}
	if near := shape.Nearest(name, names); near != "" {
		said += fmt.Sprintf(", did you mean \"--%s\"?", near)
	}
	return said
}

// suggestFlags says what this verb has for flags of other tools, at most three; "" is nothing.
func suggestFlags(verb *kong.Node, args []string) string {
	var said []string
	for _, arg := range args {
		name, _, _ := strings.Cut(arg, "=")
		if !strings.HasPrefix(name, "--") && len(name) > 2 {
			name = name[:2] // -z10s
		}
		ours := otherFlags()[name]
		i := slices.IndexFunc(verb.Flags, func(f *kong.Flag) bool { return f.Name == ours })
		known := slices.ContainsFunc(verb.Flags, func(f *kong.Flag) bool { return "--"+f.Name == name || f.Short != 0 && "-"+string(f.Short) == name })
		if known || len(said) == 3 {
			continue
		}
		if why := whyNeedless(verb.Name, name); why != "" && !slices.Contains(said, why) {
			said = append(said, why)
		}
		if i < 0 {
			continue
		}
		text := name + " is --" + ours
		if len(said) == 0 {
			text = name + " of other tools is --" + ours
		}
		if short := verb.Flags[i].Short; short != 0 {
			text += fmt.Sprintf(" (-%c)", short)
		}
		said = append(said, text)
	}
	return strings.Join(said, ", ")
}

// whyNeedless is why a verb does without a flag, mistyped or not; "" if nothing is known.
func whyNeedless(verb, flag string) string {
	all := needless(verb)
	if why := all[flag]; why != "" || !strings.HasPrefix(flag, "--") {
		return why
	}
	return all[shape.Nearest(flag, slices.Collect(maps.Keys(all)))]
}
