// Package manverb is the verb man: it makes manual pages from what the verbs say of themselves.
package manverb

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/internal/shape"

	"github.com/alecthomas/kong"
)

// Command prints a manual page, or writes them all.
type Command struct {
	Verb   string `arg:"" optional:"" help:"Verb whose page to print (default: the page of tare)."`
	Output string `short:"o" help:"Write all pages into this folder, such as /usr/local/share/man/man1." placeholder:"DIR"`
}

// Help shows examples.
func (c *Command) Help() string {
	return `Examples:

  tare man | man -l -                          read the page of tare
  tare man load | man -l -                     read the page of tare load
  tare man -o /usr/local/share/man/man1        then man tare-load works

Packages for Debian and Fedora install the pages. They show what tare VERB --help shows.`
}

// Run prints the page, or writes all into the folder.
func (c *Command) Run(t *cli.Terminal, parsed *kong.Context) error {
	root := parsed.Model.Node
	if c.Output != "" {
		if c.Verb != "" {
			return cli.Usage("name the folder alone", fmt.Errorf("--output writes the pages of all verbs, not of %s alone", c.Verb))
		}
		return c.writeAll(t, root)
	}
	if c.Verb == "" {
		_, err := t.Out.Write(page(root, cli.BuildDate()))
		return err
	}
	verbs := below(root)
	var known []string
	for _, verb := range verbs {
		known = append(known, strings.TrimPrefix(pageName(verb), root.Name+"-"))
	}
	i := slices.Index(known, c.Verb)
	if i < 0 {
		return cli.Usage(shape.Meant(c.Verb, known)+"`tare --help` lists the verbs", fmt.Errorf("no verb is called %q", c.Verb))
	}
	_, err := t.Out.Write(page(verbs[i], cli.BuildDate()))
	return err
}

// writeAll writes the pages of tare and its verbs into the folder.
func (c *Command) writeAll(t *cli.Terminal, root *kong.Node) error {
	if err := os.MkdirAll(c.Output, 0o755); err != nil {
		return fmt.Errorf("making the folder of the pages: %w", err)
	}
	nodes := append([]*kong.Node{root}, below(root)...)
	for _, n := range nodes {
		err := cli.WriteFile(filepath.Join(c.Output, pageName(n)+".1"), func(w io.Writer) error {
			_, err := w.Write(page(n, cli.BuildDate()))
			return err
		})
		if err != nil {
			return fmt.Errorf("writing the page of %s: %w", n.FullPath(), err)
		}
	}
	t.Note("wrote %d manual pages into %s", len(nodes), c.Output)
	return nil
}

// below are the visible verbs with their own, such as agent and agent-init.
func below(n *kong.Node) []*kong.Node {
	var all []*kong.Node
	for _, verb := range visible(n) {
		all = append(append(all, verb), below(verb)...)
	}
	return all
}

// visible are the verbs that are meant to be seen.
func visible(root *kong.Node) []*kong.Node {
	return slices.DeleteFunc(slices.Clone(root.Children), func(n *kong.Node) bool { return n.Hidden })
}
