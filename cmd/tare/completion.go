package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/docs"

	"github.com/alecthomas/kong"
)

// completionCmd prints a completion script made from the verbs' own flags.
type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Help says how to use the script.
func (c *completionCmd) Help() string {
	return `Examples:

    bash: source <(tare completion bash)
    zsh:  source <(tare completion zsh)
    fish: tare completion fish | source`
}

// Run prints the script.
func (c *completionCmd) Run(t *cli.Terminal, parsed *kong.Context) error {
	words := completions(parsed.Model.Node)
	script := bashScript(words)
	switch c.Shell {
	case "zsh":
		script = zshBefore + script + zshAfter
	case "fish":
		script = fishScript(words)
	}
	fmt.Fprint(t.Out, script)
	return nil
}

// What zsh needs around the script for bash. A file of this script in fpath is a function
// that zsh calls for the first completion, so that it has to complete as well.
const (
	zshBefore = `#compdef tare
(( $+functions[compdef] )) || { autoload -U compinit && compinit -i }
autoload -U +X bashcompinit && bashcompinit
`
	zshAfter = `if [ "$funcstack[1]" = _tare ]; then _bash_complete -o default -F _tare; fi
`
)

// word is one verb with its flags.
type word struct {
	verb, help string
	flags      []string
	values     []string // of the argument, where there are only these
	names      []string // commands that print what else may follow
	asking     []asking // flags that a value follows
}

// asking is a flag that a value follows: one of few, one that a command prints, or
// else what the shell knows best, such as a file.
type asking struct {
	flags  []string // the flag, and its letter if it has one
	values []string
	names  []string // as of a word
}

// listRuns prints the runs kept.
const listRuns = "tare list --runs"

// namers are the commands that print the names which a verb takes.
func namers(verb string) []string {
	const studies = "tare list --names"
	switch verb {
	case "run":
		return []string{studies}
	case "gate":
		return []string{studies, listRuns}
	case "report", "compare", "doctor":
		return []string{listRuns}
	}
	return nil
}

func completions(root *kong.Node) []word {
	var all []word
	for _, n := range root.Children {
		if n.Hidden {
			continue
		}
		w := word{verb: n.Name, help: n.Help, flags: []string{"--help"}, names: namers(n.Name)}
		for _, f := range n.Flags {
			if f.Hidden {
				continue
			}
			w.flags = append(w.flags, "--"+f.Name)
			if f.Tag.Negatable != "" {
				w.flags = append(w.flags, "--no-"+f.Name)
			}
			if !f.IsBool() && !f.IsCounter() {
				w.asking = append(w.asking, askingOf(f))
			}
		}
		for _, a := range n.Positional {
			if a.Enum != "" {
				w.values = append(w.values, a.EnumSlice()...)
			}
		}
		switch n.Name {
		case "help":
			w.values = docs.Topics()
		case "man":
			for _, verb := range root.Children {
				if !verb.Hidden {
					w.values = append(w.values, verb.Name)
				}
			}
		}
		slices.Sort(w.flags)
		all = append(all, w)
	}
	return all
}

func askingOf(f *kong.Flag) asking {
	a := asking{flags: []string{"--" + f.Name}}
	if f.Short != 0 {
		a.flags = append(a.flags, "-"+string(f.Short))
	}
	if f.Enum != "" {
		a.values = f.EnumSlice()
	}
	if f.Name == "resume" || f.Name == "study" {
		a.names = []string{listRuns}
	}
	return a
}

func bashScript(words []word) string {
	var b strings.Builder
	verbs := make([]string, len(words))
	for i, w := range words {
		verbs[i] = w.verb
	}
	fmt.Fprintf(&b, `_tare() {
  local cur=${COMP_WORDS[COMP_CWORD]} last=${COMP_WORDS[COMP_CWORD-1]}
  if [ "$cur" = = ]; then cur=; elif [ "$last" = = ]; then last=${COMP_WORDS[COMP_CWORD-2]}; fi # --flag=value is three words
  if [ "$COMP_CWORD" = 1 ]; then
    COMPREPLY=($(compgen -W %q -- "$cur"))
    return
  fi
  case "${COMP_WORDS[1]}" in
`, strings.Join(verbs, " "))
	for _, w := range words {
		fmt.Fprintf(&b, "    %s) case \"$last\" in\n", w.verb)
		var others []string
		for _, a := range w.asking {
			if len(a.names)+len(a.values) == 0 {
				others = append(others, a.flags...)
				continue
			}
			fmt.Fprintf(&b, "      %s) %s ;;\n", strings.Join(a.flags, "|"), bashReply(a.values, a.names))
		}
		if len(others) > 0 {
			fmt.Fprintf(&b, "      %s) COMPREPLY=() ;;\n", strings.Join(others, "|")) // a file, perhaps
		}
		fmt.Fprintf(&b, "      *) %s ;;\n    esac ;;\n", bashReply(slices.Concat(w.values, w.flags), w.names))
	}
	b.WriteString("  esac\n}\ncomplete -o default -F _tare tare\n")
	return b.String()
}

// bashReply has bash offer values and what commands print.
func bashReply(values, names []string) string {
	list := strings.Join(values, " ")
	for _, command := range names {
		list += " $(" + command + " 2>/dev/null)"
	}
	return `COMPREPLY=($(compgen -W "` + list + `" -- "$cur"))`
}

func fishScript(words []word) string {
	var b strings.Builder
	for _, w := range words {
		fmt.Fprintf(&b, "complete -c tare -n __fish_use_subcommand -a %s -d %q\n", w.verb, w.help)
		for _, f := range w.flags {
			fmt.Fprintf(&b, "complete -c tare -n '__fish_seen_subcommand_from %s' -l %s%s\n", w.verb, strings.TrimPrefix(f, "--"), w.follows(f))
		}
		for _, value := range w.values {
			fmt.Fprintf(&b, "complete -c tare -n '__fish_seen_subcommand_from %s' -a %s\n", w.verb, value)
		}
		for _, names := range w.names {
			fmt.Fprintf(&b, "complete -c tare -n '__fish_seen_subcommand_from %s' -a '(%s 2>/dev/null)'\n", w.verb, names)
		}
	}
	return b.String()
}

// follows tells fish what follows a flag, if anything does.
func (w *word) follows(flag string) string {
	for _, a := range w.asking {
		if a.flags[0] != flag {
			continue
		}
		offered := slices.Clone(a.values)
		for _, command := range a.names {
			offered = append(offered, "("+command+" 2>/dev/null)")
		}
		if len(offered) == 0 {
			return " -r"
		}
		return " -x -a '" + strings.Join(offered, " ") + "'"
	}
	return ""
}
