package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

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
func (c *completionCmd) Run(t *terminal, parsed *kong.Context) error {
	words := completions(parsed.Model.Node)
	script := bashScript(words)
	switch c.Shell {
	case "zsh":
		script = "autoload -U +X bashcompinit && bashcompinit\n" + script
	case "fish":
		script = fishScript(words)
	}
	_, err := io.WriteString(t.out, script)
	return err
}

// word is one verb with its flags.
type word struct {
	verb, help string
	flags      []string
	values     []string // of the argument, where there are only these
	names      []string // commands that print what else may follow
}

// namers are the commands that print the names which a verb takes.
func namers(verb string) []string {
	const studies, runs = "tare list --names", "tare list --runs"
	switch verb {
	case "run":
		return []string{studies}
	case "gate":
		return []string{studies, runs}
	case "report", "compare", "doctor":
		return []string{runs}
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
		}
		for _, a := range n.Positional {
			if a.Enum != "" {
				w.values = append(w.values, a.EnumSlice()...)
			}
		}
		slices.Sort(w.flags)
		all = append(all, w)
	}
	return all
}

func bashScript(words []word) string {
	var b strings.Builder
	verbs := make([]string, len(words))
	for i, w := range words {
		verbs[i] = w.verb
	}
	fmt.Fprintf(&b, `_tare() {
  local cur=${COMP_WORDS[COMP_CWORD]}
  if [ "$COMP_CWORD" = 1 ]; then
    COMPREPLY=($(compgen -W %q -- "$cur"))
    return
  fi
  case "${COMP_WORDS[1]}" in
`, strings.Join(verbs, " "))
	for _, w := range words {
		list := strings.Join(slices.Concat(w.values, w.flags), " ")
		for _, names := range w.names {
			list += " $(" + names + " 2>/dev/null)"
		}
		fmt.Fprintf(&b, "    %s) COMPREPLY=($(compgen -W \"%s\" -- \"$cur\")) ;;\n", w.verb, list)
	}
	b.WriteString("  esac\n}\ncomplete -o default -F _tare tare\n")
	return b.String()
}

func fishScript(words []word) string {
	var b strings.Builder
	for _, w := range words {
		fmt.Fprintf(&b, "complete -c tare -n __fish_use_subcommand -a %s -d %q\n", w.verb, w.help)
		for _, f := range w.flags {
			fmt.Fprintf(&b, "complete -c tare -n '__fish_seen_subcommand_from %s' -l %s\n", w.verb, strings.TrimPrefix(f, "--"))
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
