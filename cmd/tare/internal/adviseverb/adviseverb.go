// Package adviseverb picks router, engine, proxy and middlewares for a need: the verb advise.
//
// A choice has reasons. One that rests on a figure names the run that measured it, and says
// if that was on another machine. One that rests on what a program can do says so without a
// figure. What neither covers is said, with the command that would measure it.
package adviseverb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cmd/tare/internal/runs"
	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/stats/unit"
)

// Command asks what is needed, and answers with what to choose.
type Command struct {
	Need     []string `help:"What you need: speed, proxy (something in front), mesh, annotations (configuration by them), browsers, accounts, public, handlers (keep those of net/http); repeatable." placeholder:"NEED"`
	Know     []string `help:"What you know already, such as gin or nginx; repeatable." placeholder:"NAME"`
	Protocol []string `help:"What clients speak other than HTTP/1.1: http2, http3, grpc, websocket; repeatable." placeholder:"NAME"`
	Memory   string   `help:"Most memory that a process may take, such as 64MiB." placeholder:"SIZE"`
	PID      int      `name:"pid" type:"pid" help:"Process ID of a service to read: what it is built of, and its memory. Linux." placeholder:"N"`
	URL      string   `name:"url" help:"URL of a service to request once, to see what answers and by which protocols." placeholder:"URL"`
	runs.HomeFlag
	JSON bool `name:"json" help:"Print JSON."`
}

// Help says what advice rests on.
func (c *Command) Help() string {
	return `Examples:

  tare advise --need speed --know gin             the fastest router, unless gin is as fast
  tare advise --need mesh --protocol grpc --memory 64MiB
  tare advise --pid 4711 --need speed,public      from what a process is built of

Figures come from the runs kept in --dir, the newest of each study first. Where none is
kept, advise names the study to run and shows what was measured elsewhere.`
}

// Run asks, and prints the advice.
func (c *Command) Run(ctx context.Context, t *cli.Terminal) error {
	n, err := c.needs()
	if err != nil {
		return err
	}
	s := service{Seen: []string{}}
	if c.PID != 0 {
		if err := s.readProcess(c.PID); err != nil {
			return err
		}
	}
	if c.URL != "" {
		if err := s.ask(ctx, c.URL); err != nil {
			return err
		}
	}
	n.learn(&s)
	e, err := gather(ctx, c.Dir)
	if err != nil {
		return err
	}
	for _, why := range e.broken {
		t.Note("warning: %s", why)
	}
	a := &adviser{needs: n, service: &s, evidence: e}
	all := a.advise()
	if c.JSON {
		return t.JSON(map[string]any{"needs": n.words, "service": s.Seen, "advice": all})
	}
	return doc.Text(t.Out, page(n, &s, all), t.PageLayout())
}

// needs are what a choice is made for.
type needs struct {
	words  []string // as asked for, in the order of the flags
	set    map[string]bool
	know   []string
	memory float64 // bytes; 0 = no bound
}

// What may be asked for, beside what is known and a bound of memory.
const (
	speed       = "speed"
	inFront     = "proxy"
	mesh        = "mesh"
	annotations = "annotations"
	browsers    = "browsers"
	accounts    = "accounts"
	public      = "public"
	handlers    = "handlers"
)

var (
	needWords     = []string{speed, inFront, mesh, annotations, browsers, accounts, public, handlers}
	protocolWords = []string{"http2", "http3", "grpc", "websocket"}
)

// needs reads the flags.
func (c *Command) needs() (*needs, error) {
	if len(c.Need)+len(c.Know)+len(c.Protocol) == 0 && c.Memory == "" && c.PID == 0 && c.URL == "" {
		return nil, cli.Usage("such as `tare advise --need speed`, or name a service by --pid or --url",
			errors.New("nothing to advise on: no need and no service"))
	}
	n := &needs{words: []string{}, set: map[string]bool{}}
	for _, asked := range []struct {
		flag         string
		words, known []string
	}{{"--need", c.Need, needWords}, {"--protocol", c.Protocol, protocolWords}} {
		for _, word := range asked.words {
			if !slices.Contains(asked.known, word) {
				return nil, cli.Usage("there are "+strings.Join(asked.known, ", "), fmt.Errorf("%s %q is not known", asked.flag, word))
			}
			n.add(word)
		}
	}
	for _, name := range c.Know {
		if !isOption(name) {
			return nil, cli.Usage("there are "+strings.Join(names(), ", "), fmt.Errorf("--know %q is not known", name))
		}
		n.know = append(n.know, name)
	}
	if c.Memory != "" {
		v, base, err := unit.Parse(c.Memory)
		if err == nil && (base != unit.Bytes || v <= 0) {
			err = errors.New("it is not a size")
		}
		if err != nil {
			return nil, cli.Usage("such as 64MiB", fmt.Errorf("--memory %q: %w", c.Memory, err))
		}
		n.memory = v
	}
	return n, nil
}

func (n *needs) add(word string) {
	if !n.set[word] {
		n.set[word] = true
		n.words = append(n.words, word)
	}
}

// learn takes over what a service shows that it needs, and what it is built of, which is
// known. Who knows a router has handlers of net/http.
func (n *needs) learn(s *service) {
	for _, word := range s.needs {
		n.add(word)
	}
	for _, p := range parts() {
		if now := s.now[p.name]; now != "" {
			n.know = append(n.know, now)
		}
		for _, o := range p.options {
			if p.name == router && slices.ContainsFunc(n.know, o.goesBy) {
				n.add(handlers)
			}
		}
	}
}

// isOption reports whether an option of any part goes by a name.
func isOption(name string) bool {
	return slices.ContainsFunc(parts(), func(p part) bool {
		return slices.ContainsFunc(p.options, func(o option) bool { return o.goesBy(name) })
	})
}

// page is the advice as text.
func page(n *needs, s *service, all []Advice) doc.Page {
	p := doc.Page{Title: "Advice"}
	var terms doc.Terms
	if len(n.words) > 0 {
		terms.Add("needs", "%s", strings.Join(n.words, ", "))
	}
	if len(n.know) > 0 {
		terms.Add("known", "%s", strings.Join(n.know, ", "))
	}
	if n.memory > 0 {
		terms.Add("memory", "at most %s", unit.Format(n.memory, unit.Bytes))
	}
	for _, seen := range s.Seen {
		terms.Add("seen", "%s", seen)
	}
	p.Add(doc.Heading{Level: 1, Text: "Advice"}, terms)
	var layers []Advice
	for _, a := range all {
		if strings.HasPrefix(a.Part, layerPart) {
			layers = append(layers, a)
			continue
		}
		p.Add(doc.Heading{Level: 2, Text: a.Part + ": " + a.Choice})
		var l doc.List
		if a.Now != "" {
			l.Items = append(l.Items, doc.Plain("now: "+a.Now))
		}
		for _, r := range a.Reasons {
			l.Items = append(l.Items, r.spans())
		}
		for _, open := range a.Open {
			l.Items = append(l.Items, lacking(open))
		}
		p.Add(l)
	}
	if len(layers) > 0 {
		p.Add(doc.Heading{Level: 2, Text: "middlewares"}, layerList(layers))
	}
	return p
}

func lacking(open string) doc.Spans {
	return doc.Spans{{Text: "no figure: ", Tone: doc.Warn}, {Text: open}}
}

// layerList has what to choose of each kind of middleware, and once what no figure covers.
func layerList(all []Advice) doc.List {
	var l doc.List
	var open []string
	without := map[string][]string{} // kinds, by what no figure covers
	for _, a := range all {
		kind := strings.TrimPrefix(a.Part, layerPart)
		for i, r := range a.Reasons {
			if i == 0 {
				r.Says = kind + ": " + a.Choice + "; " + r.Says
			}
			l.Items = append(l.Items, r.spans())
		}
		for _, o := range a.Open {
			if without[o] == nil {
				open = append(open, o)
			}
			without[o] = append(without[o], kind)
		}
	}
	for _, o := range open {
		l.Items = append(l.Items, lacking(strings.Join(without[o], ", ")+": "+o))
	}
	return l
}
