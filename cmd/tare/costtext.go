package main

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/pprof"
	"github.com/tarehq/tare/lab/report"
	"github.com/tarehq/tare/stats/unit"
)

// bill is who spent what, in one window.
type bill struct {
	source      string
	cpu, allocs *pprof.Profile // nil = not to be had
	window      cost.Window
	warnings    []error
}

// item is one owner of a bill, per request or, if nobody counted those, per
// second.
type item struct {
	Kind    string             `json:"kind"`
	Owner   string             `json:"owner"`
	Where   string             `json:"where,omitempty"`
	Self    float64            `json:"self_ns"`
	Margin  float64            `json:"self_margin_ns"` // half of the 95 % interval
	Total   float64            `json:"total_ns"`
	GC      float64            `json:"gc_share_ns"`
	Bytes   float64            `json:"bytes"`
	Objects float64            `json:"objects"`
	Causes  map[string]float64 `json:"causes_ns,omitempty"`

	mostly string // the largest causes, for people
}

// billed is a bill in JSON.
type billed struct {
	Source   string   `json:"source"`
	Seconds  float64  `json:"seconds"`
	Requests float64  `json:"requests"` // 0: not counted
	Per      string   `json:"per"`      // "request" or "second"
	CPU      float64  `json:"cpu_ns"`
	Bytes    float64  `json:"bytes"`
	Objects  float64  `json:"objects"`
	Owners   []item   `json:"owners"`
	Warnings []string `json:"warnings,omitempty"`
}

// divisor is what values are divided by.
func (b *bill) divisor() (float64, string) {
	if b.window.Requests > 0 {
		return b.window.Requests, "request"
	}
	if s := b.window.Duration.Seconds(); s > 0 {
		return s, "second"
	}
	return 1, "profile"
}

// tables charges every stack.
func (b *bill) tables() (cpu, bytes cost.Table) {
	for table, p := range map[*cost.Table]*pprof.Profile{&cpu: b.cpu, &bytes: b.allocs} {
		if p == nil {
			continue
		}
		for i := range p.Stacks {
			table.Add(&p.Stacks[i])
		}
	}
	return cpu, bytes
}

func (b *bill) document() *billed {
	cpu, bytes := b.tables()
	by, per := b.divisor()
	d := &billed{
		Source: b.source, Seconds: b.window.Duration.Seconds(), Requests: b.window.Requests, Per: per,
		CPU: cpu.Sum().Value / by, Bytes: bytes.Sum().Value / by, Objects: bytes.Sum().Count / by,
	}
	for _, w := range b.warnings {
		d.Warnings = append(d.Warnings, w.Error())
	}
	shares := cpu.ShareGC(&bytes)
	allocs := map[cost.Owner]cost.Row{}
	for _, r := range bytes.Rows() {
		allocs[identity(r.Owner)] = r
	}
	for _, r := range cpu.Rows() {
		id := identity(r.Owner)
		d.Owners = append(d.Owners, newItem(r, allocs[id], shares[id], by))
		delete(allocs, id)
	}
	rest := make([]cost.Row, 0, len(allocs))
	for _, r := range bytes.Rows() { // in their order
		if _, ok := allocs[identity(r.Owner)]; ok {
			rest = append(rest, r)
		}
	}
	for _, r := range rest {
		d.Owners = append(d.Owners, newItem(cost.Row{Owner: r.Owner}, r, shares[identity(r.Owner)], by))
	}
	return d
}

// identity is an owner as stacks name it: what is a middleware is known only
// once all stacks were seen, of each profile apart.
func identity(o cost.Owner) cost.Owner {
	if o.Kind == cost.Middleware {
		o.Kind = cost.Handler
	}
	return o
}

func newItem(cpu, bytes cost.Row, gc, by float64) item {
	it := item{
		Kind: cpu.Owner.Kind.String(), Owner: cpu.Owner.Name, Where: cpu.Owner.Where(),
		Self: cpu.Self.Value / by, Margin: cpu.Self.Margin() / by, Total: cpu.Total.Value / by, GC: gc / by,
		Bytes: bytes.Self.Value / by, Objects: bytes.Self.Count / by,
	}
	var largest []string
	for cause, a := range cpu.By() {
		if it.Causes == nil {
			it.Causes = map[string]float64{}
		}
		it.Causes[cause.String()] = a.Value / by
		if share := a.Value / cpu.Self.Value; len(largest) < 3 && share >= 0.05 {
			largest = append(largest, fmt.Sprintf("%s %.0f %%", cause, 100*share))
		}
	}
	it.mostly = strings.Join(largest, ", ")
	return it
}

// text shows the owners that matter, and what the rest comes to.
func (b *bill) text(t *terminal) error {
	d := b.document()
	w := bufio.NewWriter(t.out)
	fmt.Fprintf(w, "cost of %s", report.Printable(d.Source))
	if d.Seconds > 0 {
		fmt.Fprintf(w, " over %.0f s", d.Seconds)
	}
	if d.Requests > 0 {
		fmt.Fprintf(w, ", %s requests", unit.Number(d.Requests))
	}
	fmt.Fprintf(w, "\nCPU per %s %s", d.Per, unit.Format(d.CPU, unit.Nanoseconds))
	if b.allocs != nil {
		fmt.Fprintf(w, ", %s in %s allocations", unit.Format(d.Bytes, unit.Bytes), unit.Number(d.Objects))
	}
	fmt.Fprint(w, "\n\n")
	rows, rest := d.weighty()
	printOwners(w, rows, b.allocs != nil, t.width)
	if rest.n > 0 {
		fmt.Fprintf(w, "and %d more, %s in all\n", rest.n, unit.Format(rest.self, unit.Nanoseconds))
	}
	if b.window.Requests == 0 {
		fmt.Fprintf(w, "\nNobody counted the requests, so costs are per %s: --load URL or --requests N\nmake them per request.\n", d.Per)
	}
	for _, warning := range d.Warnings {
		fmt.Fprintf(w, "warning: %s\n", report.Printable(warning))
	}
	return w.Flush()
}

// remainder is what is not shown row by row.
type remainder struct {
	n    int
	self float64
}

// weighty returns the owners with at least a two-hundredth of CPU or bytes.
func (d *billed) weighty() (rows []item, rest remainder) {
	for _, it := range d.Owners {
		if it.Self >= d.CPU/200 && it.Self > 0 || it.Bytes >= d.Bytes/200 && it.Bytes > 0 {
			rows = append(rows, it)
			continue
		}
		rest.n++
		rest.self += it.Self
	}
	return rows, rest
}

// printOwners prints two lines an owner: figures and name, then what it is,
// where it is written and what it mostly did.
func printOwners(w io.Writer, rows []item, allocs bool, width int) {
	head := []string{"self", "±", "total"}
	if allocs {
		head = append(head, "gc", "bytes", "allocs")
	}
	cells := [][]string{head}
	for _, it := range rows {
		row := []string{quantity(it.Self, unit.Nanoseconds), quantity(it.Margin, unit.Nanoseconds), quantity(it.Total, unit.Nanoseconds)}
		if allocs {
			row = append(row, quantity(it.GC, unit.Nanoseconds), quantity(it.Bytes, unit.Bytes), quantity(it.Objects, unit.Count))
		}
		cells = append(cells, row)
	}
	widths := make([]int, len(head))
	figures := 0
	for i := range head {
		for _, row := range cells {
			widths[i] = max(widths[i], len([]rune(row[i])))
		}
		figures += widths[i] + 2
	}
	room := max(16, width-figures)
	for i, row := range cells {
		for j, c := range row {
			fmt.Fprintf(w, "%*s  ", widths[j], c)
		}
		if i == 0 {
			fmt.Fprintln(w, "owner")
			continue
		}
		fmt.Fprintln(w, report.Printable(fit(rows[i-1].Owner, room)))
		fmt.Fprintf(w, "    %s\n", report.Printable(fit(rows[i-1].describe(), width-4)))
	}
}

// describe says what an owner is, where it is written and what it did.
func (it *item) describe() string {
	parts := []string{it.Kind}
	if it.Where != "" {
		parts = append(parts, it.Where)
	}
	if it.mostly != "" {
		parts = append(parts, it.mostly)
	}
	return strings.Join(parts, ", ")
}

func quantity(v float64, base string) string {
	if v == 0 {
		return "–"
	}
	return unit.Format(v, base)
}

// fit cuts text to a number of columns.
func fit(text string, columns int) string {
	runes := []rune(text)
	if len(runes) <= columns {
		return text
	}
	return string(runes[:columns-1]) + "…"
}

// fold writes a line a stack, outermost first: the owner and cause, then the
// functions; and the nanoseconds.
func (b *bill) fold(w io.Writer) error {
	out := bufio.NewWriter(w)
	clean := strings.NewReplacer(";", ",", " ", "_", "\n", "_", "\r", "_")
	for _, s := range b.cpu.Stacks {
		owner, cause := cost.Charge(s.Frames)
		names := []string{owner.Name, cause.String()}
		for _, f := range slices.Backward(s.Frames) {
			names = append(names, f.Func)
		}
		for i, n := range names {
			names[i] = clean.Replace(n)
		}
		fmt.Fprintf(out, "%s %.0f\n", strings.Join(names, ";"), s.Value)
	}
	return out.Flush()
}
