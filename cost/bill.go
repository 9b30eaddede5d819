package cost

import "math"

// Bill is who spent what in one window: per request, or per second where nobody
// counted the requests. Its JSON is the form that `tare cost --json` prints.
type Bill struct {
	Source   string  `json:"source"`
	Seconds  float64 `json:"seconds"`
	Requests float64 `json:"requests"` // 0: not counted
	// RequestsMargin is half of the 95 % interval of Requests; 0: counted one by one.
	RequestsMargin float64  `json:"requests_margin,omitempty"`
	Per            string   `json:"per"` // "request", "second" or, if not even the time is known, "profile"
	CPU            float64  `json:"cpu_ns,omitzero"`
	Bytes          float64  `json:"bytes,omitzero"` // 0, as Objects: not measured
	Objects        float64  `json:"objects,omitzero"`
	Items          []Item   `json:"owners"`                   // by Self, the largest first; their Self add up to CPU, their Bytes to Bytes
	Waited         float64  `json:"waited_seconds,omitempty"` // how long waits were looked at; 0: not at all
	Sampled        *Sampled `json:"sampled,omitempty"`        // nil: not from outside
	Warnings       []string `json:"warnings,omitempty"`

	rules *Rules
}

// Sampled says how a bill's CPU was sampled by the kernel, from outside.
type Sampled struct {
	Hz      int     `json:"hz"` // of each CPU
	Clock   string  `json:"clock"`
	Late    int64   `json:"late_ns,omitempty"` // that the clock ticks, or more, three times in four; 0: not at all, or not known
	Stacks  int     `json:"stacks"`
	Lost    int     `json:"lost"`
	Covered float64 `json:"covered"` // what they stand for by themselves, as a share of the CPU that the kernel counted; 0: not known
	Cost    float64 `json:"cost"`    // what taking them cost, as a share of that CPU
}

// Item is what one owner spent, per Bill.Per.
type Item struct {
	Kind    string  `json:"kind"`
	Owner   string  `json:"owner"`
	Where   string  `json:"where,omitempty"`   // file:line
	Package string  `json:"package,omitempty"` // its import path; the folder of its file where that is not known
	Self    float64 `json:"self_ns"`
	Margin  float64 `json:"self_margin_ns"`       // half of the 95 % interval of Self, by the stacks seen and the requests counted
	Total   float64 `json:"total_ns"`             // with the owners inside it
	GC      float64 `json:"gc_share_ns,omitzero"` // its part of the collector's background work
	Bytes   float64 `json:"bytes,omitzero"`
	Objects float64 `json:"objects,omitzero"`
	Causes  []Share `json:"causes,omitempty"` // of Self, the largest first

	Wait  float64     `json:"wait_ns,omitempty"` // within requests, if waits were looked at
	Waits []WaitShare `json:"waits,omitempty"`   // the largest first

	Wall *WallShare `json:"wall,omitempty"` // if its calls were watched by the clock

	place Owner
}

// Share is a part of an item's own cost.
type Share struct {
	Cause string  `json:"cause"`
	Value float64 `json:"ns"`
}

// NewBill charges CPU stacks and, where they are to be had, allocation stacks.
func NewBill(cpu, allocs []Stack, w Window) *Bill { return Learn(cpu, allocs).Bill(cpu, allocs, w) }

// Bill is [NewBill] by what was learned before.
func (o *Rules) Bill(cpu, allocs []Stack, w Window) *Bill {
	time, bytes := Table{Rules: o}, Table{Rules: o}
	for i := range cpu {
		time.Add(&cpu[i])
	}
	for i := range allocs {
		bytes.Add(&allocs[i])
	}
	by, per := w.divisor()
	b := &Bill{
		Seconds: w.Duration.Seconds(), Requests: w.Requests, RequestsMargin: w.Margin, Per: per,
		rules: o, CPU: time.Sum().Value / by, Bytes: bytes.Sum().Value / by, Objects: bytes.Sum().Count / by,
	}
	shares := time.ShareGC(&bytes)
	time.agree(&bytes)
	rows := time.Rows()
	for _, r := range rows {
		b.Items = append(b.Items, newItem(r, bytes.rows[r.Owner.seen()], shares[r.Owner.seen()], by))
	}
	for _, r := range bytes.Rows() {
		if time.rows[r.Owner.seen()] == nil {
			b.Items = append(b.Items, newItem(Row{Owner: r.Owner}, bytes.rows[r.Owner.seen()], shares[r.Owner.seen()], by))
		}
	}
	b.distinguish()
	b.lumped(cpu, rows, time.Sum().Value)
	b.guessed()
	if w.Requests > 0 {
		for i := range b.Items {
			it := &b.Items[i]
			it.Margin = math.Hypot(it.Margin, it.Self*w.Margin/w.Requests)
		}
	}
	return b
}

// NamePackages gives owners whose package is known by its folder alone, as that of
// literals is, their import path. A program's build information has the paths of its
// module and of its package main.
func (b *Bill) NamePackages(module, program string) {
	for i := range b.Items {
		b.Items[i].Package = b.rules.packages.Rename(b.Items[i].Package, module, program)
	}
}

// divisor is what a window's values are divided by, and its name.
func (w Window) divisor() (float64, string) {
	switch s := w.Duration.Seconds(); {
	case w.Requests > 0:
		return w.Requests, "request"
	case s > 0:
		return s, "second"
	}
	return 1, "profile"
}

// seen is the owner as single stacks name it: which of them is a middleware is
// known only once all stacks of a profile were seen.
func (o Owner) seen() Owner {
	if o.Kind == Middleware {
		o.Kind = Handler
	}
	return o
}

func newItem(r Row, bytes *Row, gc, by float64) Item {
	it := Item{
		Kind: r.Owner.Kind.String(), Owner: r.Owner.Name, Where: r.Owner.Where(),
		Self: r.Self.Value / by, Margin: r.Self.Margin() / by, Total: r.Total.Value / by, GC: gc / by,
		place: r.Owner.place(),
	}
	if bytes != nil {
		it.Bytes, it.Objects = bytes.Self.Value/by, bytes.Self.Count/by
	}
	for cause, a := range r.By() {
		it.Causes = append(it.Causes, Share{cause.String(), a.Value / by})
	}
	return it
}

// Weighty returns the middlewares, the items with at least a two-hundredth of the CPU, the
// bytes or the waiting, and those that were watched by the clock. It also returns how many
// others there are and what they spent.
func (b *Bill) Weighty() (items []Item, others int, rest float64) {
	var waited float64
	for _, it := range b.Items {
		waited += it.Wait
	}
	for _, it := range b.Items {
		if it.Wall != nil || it.Kind == Middleware.String() || it.Self > 0 && it.Self >= b.CPU/200 || it.Bytes > 0 && it.Bytes >= b.Bytes/200 || it.Wait > 0 && it.Wait >= waited/200 {
			items = append(items, it)
			continue
		}
		others++
		rest += it.Self
	}
	return items, others, rest
}
