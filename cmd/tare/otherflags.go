package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// otherFlags are flags of wrk, wrk2, hey, oha, ab and k6, and what they are called here.
func otherFlags() map[string]string {
	return map[string]string{
		"-z": "duration", "-X": "method", "-R": "rate", "-D": "body-file", "-Z": "body-file", "-p": "streams",
		"--vus": "connections", "--concurrency": "connections", "--rps": "rate", "--qps": "rate", "--query-per-second": "rate",
		"--iterations": "requests", "--disable-keepalive": "new-connections", "--data": "body", "--data-file": "body-file",
		"--cacert": "ca", "-x": "proxy", "--unix-socket": "unix", "-a": "user", "-A": "header", "--http-version": "http2", "--request": "method", "--parallel": "streams",
	}
}

// suggestFlags names this verb's flags for those of other tools, at most three; "" is none.
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
		if verb.Name == "load" && (name == "-L" || name == "--latency") && len(said) < 3 { // wrk's
			said = append(said, "leave out "+name+": percentiles are always shown")
		}
		if i < 0 || known || len(said) == 3 {
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
