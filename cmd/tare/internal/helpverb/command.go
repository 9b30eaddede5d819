// Package helpverb is the verb help: it prints the documentation's pages as text.
package helpverb

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cmd/tare/internal/helpverb/site"
	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/docs"
	"github.com/tarehq/tare/internal/shape"

	"github.com/alecthomas/kong"
)

// Command prints a topic.
type Command struct {
	Topic string `arg:"" optional:"" help:"A topic, topics for the list, a verb, or a study."`
	Site  string `help:"Write all pages as a web site into this folder. It has a search and needs no server." placeholder:"DIR"`
}

// Help says what topics are.
func (c *Command) Help() string {
	return `Examples:

  tare help topics
  tare help study-files
  tare help load
  tare help --site tare-docs        then open tare-docs/index.html

A topic is a page of the documentation. tare help VERB prints the page of a verb. For a
verb without a page it prints the same as tare VERB --help, for a study the same as
tare list STUDY. On a terminal, a page longer than the screen opens in $PAGER, or else in
less; PAGER= prints it at once.`
}

// mostColumns is the widest text that reads well.
const mostColumns = 100

// Run prints the topic.
func (c *Command) Run(t *cli.Terminal, parsed *kong.Context) error {
	if c.Site != "" {
		return c.writeSite(t)
	}
	if !docs.IsTopic(c.Topic) {
		known := docs.Topics()
		for _, verb := range parsed.Model.Children {
			known = append(known, verb.Name)
		}
		return cli.Usage(shape.Meant(c.Topic, known)+"`tare help topics` lists the topics", fmt.Errorf("no topic is called %q", c.Topic))
	}
	var text strings.Builder
	if err := doc.Text(&text, readPage(docs.Page(c.Topic)), doc.TextOptions{Width: min(t.Width, mostColumns), Color: t.Colour}); err != nil {
		return err
	}
	return t.PrintPaged(text.String())
}

// writeSite writes all pages into the folder.
func (c *Command) writeSite(t *cli.Terminal) error {
	if c.Topic != "" {
		return cli.Usage("name the folder alone", fmt.Errorf("--site writes all pages, not %s alone", c.Topic))
	}
	if err := site.Write(c.Site); err != nil {
		return fmt.Errorf("writing the pages into %s: %w", c.Site, err)
	}
	t.Note("wrote %d pages, open %s", len(docs.Topics()), filepath.Join(c.Site, "index.html"))
	return nil
}

// PrintGuide prints where a verb, or without one tare, is described further.
func PrintGuide(t *cli.Terminal, verb string) {
	switch {
	case verb == "":
		fmt.Fprintln(t.Out)
		cli.Wrap(t.Out, "Topics: ", strings.Join(docs.Topics(), ", ")+".", t.Width)
		fmt.Fprintln(t.Out, "\nRun \"tare help TOPIC\" to read one. The topic topics lists them by task.")
	case docs.IsTopic(verb):
		fmt.Fprintf(t.Out, "\nRun \"tare help %s\" to read its guide.\n", verb)
	}
}
