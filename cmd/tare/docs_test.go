package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tarehq/tare/cmd/tare/internal/cli"

	"github.com/alecthomas/kong"
)

// Every command line in the pages, and in the verbs' own help, is one that tare
// takes. Those of code blocks are parsed whole; what stands within a sentence may
// leave out what a verb needs, but has no verb and no flag that is not there.
func TestDocsCommands(t *testing.T) {
	blocks, mentions := 0, 0
	check := func(where, text string) {
		for _, line := range blockCommands(text) {
			if err := parseLine(line); err != nil {
				t.Errorf("%s: %q: %v", where, line, err)
			}
			blocks++
		}
		for _, m := range mentionedCommands(text) {
			if err := knownWords(m); err != nil {
				t.Errorf("%s: `%s`: %v", where, m, err)
			}
			mentions++
		}
	}
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(pages, "../../README.md", "../../CONTRIBUTING.md", "../../CHANGELOG.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		check(filepath.Base(page), string(text))
	}
	if blocks < 25 || mentions < 50 {
		t.Errorf("found %d command lines in code blocks and %d in sentences, want 25 and 50 or more: are they still found?", blocks, mentions)
	}
	blocks = 0
	for _, verb := range model(t).Children {
		check("tare "+verb.Name+" --help", strings.ReplaceAll(verb.Detail, "\n  tare ", "\n    tare "))
	}
	if blocks < 25 {
		t.Errorf("found %d command lines in the verbs' help, want 25 or more", blocks)
	}
}

// The help of a verb tells what a flag is unless it is given.
func TestHelpTellsDefaults(t *testing.T) {
	told := 0
	for _, verb := range model(t).Children {
		for _, f := range verb.Flags {
			if !f.HasDefault || f.IsBool() {
				continue
			}
			told++
			if text := f.FormatPlaceHolder() + f.Help; !strings.Contains(text, f.Default) {
				t.Errorf("tare %s --help: --%s=%s: does not tell its default, %s", verb.Name, f.Name, text, f.Default)
			}
		}
	}
	if told < 20 {
		t.Errorf("found %d flags with a default, want 20 or more: are they still found?", told)
	}
}

// A command line that tare does not take is seen.
func TestDocsCommandsWrong(t *testing.T) {
	for _, text := range []string{
		"    tare rum nesting                 the whole study",
		"    tare run --bugdet 10m nesting",
		"    $ sudo tare cost --pid none",
		"    nsenter -t 4711 -n tare whatif --pid 4711 --owner 'a b' --slow 20",
		"```sh\ngo run ./cmd/tare run --blocks many   # of them\n```",
		"as `tare claim` says",
		"as `tare cost URL --mraks` says",
		"as `nsenter -t 1 -n tare trace --pod N` says",
	} {
		var err error
		for _, line := range blockCommands(text) {
			err = parseLine(line)
		}
		for _, m := range mentionedCommands(text) {
			err = knownWords(m)
		}
		if err == nil {
			t.Errorf("%q: no error, want one", text)
		}
	}
}

// program is how a command line may begin: as root, in another's namespaces, or
// from source.
var (
	program   = `(?:sudo )?(?:nsenter(?: -\S+)*(?: \d+)?(?: -\S+)* )?(?:tare|go run \./cmd/tare)`
	blockLine = regexp.MustCompile(`^(?:    )?(?:\$ )?` + program + `((?: .*)?)$`)
	mention   = regexp.MustCompile("`" + program + " ([^`]+)`")
	remark    = regexp.MustCompile(`\s{2,}.*$| #.*$| [|>&].*$`)
)

// blockCommands are the arguments of tare in the lines of code blocks, what is
// said beside them left out.
func blockCommands(text string) []string {
	var all []string
	fenced := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
			continue
		}
		m := blockLine.FindStringSubmatch(line)
		if m == nil || !fenced && !strings.HasPrefix(line, "    ") {
			continue
		}
		if strings.HasPrefix(m[1], "  ") { // a remark follows at once
			m[1] = ""
		}
		all = append(all, strings.TrimSpace(remark.ReplaceAllString(m[1], "")))
	}
	return all
}

// mentionedCommands are the arguments of tare within sentences. Of alternatives
// the first is taken.
func mentionedCommands(text string) []string {
	var all []string
	for _, m := range mention.FindAllStringSubmatch(text, -1) {
		first, _, _ := strings.Cut(m[1], `\|`)
		all = append(all, first)
	}
	return all
}

// parseLine has tare's own parser read arguments.
func parseLine(line string) error {
	words, err := split(line)
	if err != nil || len(words) == 0 {
		return err
	}
	var v verbs
	parser, err := newParser(context.Background(), &v, &cli.Terminal{Out: io.Discard, Err: io.Discard}, func(int) {})
	if err != nil {
		return err
	}
	_, err = parser.Parse(words)
	return err
}

// split divides a line into words as a shell does, with quotes and nothing else.
func split(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	var quote rune
	begun := false
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote, begun = r, true
		case quote == 0 && r == ' ':
			if begun {
				words = append(words, word.String())
			}
			word.Reset()
			begun = false
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("quote %c is not closed", quote)
	}
	if begun {
		words = append(words, word.String())
	}
	return words, nil
}

// knownWords reports whether the verb and the flags of a mention are tare's.
func knownWords(line string) error {
	words, err := split(line)
	if err != nil {
		return err
	}
	if words[0] == "VERB" {
		return nil
	}
	tare, err := application()
	if err != nil {
		return err
	}
	at := slices.IndexFunc(tare.Children, func(n *kong.Node) bool { return n.Name == words[0] })
	if at < 0 {
		return fmt.Errorf("no verb is called %s", words[0])
	}
	known := map[string]bool{"--help": true, "-h": true}
	for _, f := range tare.Children[at].Flags {
		known["--"+f.Name] = true
		if f.Short != 0 {
			known["-"+string(f.Short)] = true
		}
	}
	for _, w := range words[1:] {
		name, _, _ := strings.Cut(w, "=")
		if strings.HasPrefix(w, "-") && w != "-" && !known[name] {
			return fmt.Errorf("%s has no flag %s", words[0], name)
		}
	}
	return nil
}

// application is tare's command line, which nothing is read into.
var application = sync.OnceValues(func() (*kong.Application, error) {
	parser, err := newParser(context.Background(), &verbs{}, &cli.Terminal{Out: io.Discard, Err: io.Discard}, func(int) {})
	if err != nil {
		return nil, err
	}
	return parser.Model, nil
})

func model(t *testing.T) *kong.Application {
	t.Helper()
	tare, err := application()
	if err != nil {
		t.Fatal(err)
	}
	return tare
}
