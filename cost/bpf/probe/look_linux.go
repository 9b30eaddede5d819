//go:build linux && amd64

package probe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cilium/ebpf"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/internal/pclntab"
)

// answering are functions that are called once in every request, deep inside the
// handler: whoever handles the request is on the stack then.
var answering = [...]string{
	"net/http.(*response).WriteHeader",
	"net/http.(*http2responseWriter).WriteHeader",
	"net/http/internal/http2.(*responseWriter).WriteHeader",
	"github.com/valyala/fasthttp.(*Response).SetBody",
	"github.com/valyala/fasthttp.(*Response).SetBodyRaw",
	"github.com/valyala/fasthttp.(*Response).SetBodyString",
	"github.com/valyala/fasthttp.(*Response).AppendBody",
	"github.com/valyala/fasthttp.(*Response).AppendBodyString",
	"github.com/tarehq/tare/serve.(*response).WriteHeader",
}

// beginning are functions that are called once for every request, before any of its
// handlers or around them.
var beginning = [...]string{
	"net/http.serverHandler.ServeHTTP",
	"github.com/tarehq/tare/serve.(*conn).dispatch",
	// Of fasthttp, and so of fiber: once it has read the header fields, one of them.
	"github.com/valyala/fasthttp.(*Request).readLimitBody",
	"github.com/valyala/fasthttp.(*Request).readBodyStream",
	"github.com/cloudwego/hertz/pkg/route.(*Engine).ServeHTTP",
	// Of gRPC's own transport. Behind net/http its (*Server).handleStream is called as
	// well, on another goroutine than that of serverHandler, which has counted it.
	"google.golang.org/grpc/internal/transport.(*http2Server).operateHeaders",
}

// Sampled has Owners know the owners of a profile of the process besides those that it
// meets. A middleware that returns before what comes next begins, as gin's may, and a
// handler that writes nothing are on no stack when a request is answered.
func (t *Target) Sampled(profile []cost.Stack) { t.sampled = profile }

// Owners returns whom to watch: the owners that go by the names given, and those
// directly inside them; without names, all. Requests are looked at for a while to
// see who handles them, at one cheap probe a request (of gRPC, one a call of any
// function that has the name of a service's method). It is an error if nobody
// does, or if a name fits nothing in the program.
func (t *Target) Owners(ctx context.Context, names []string, d time.Duration) ([]Watched, error) {
	met, err := t.meet(ctx, d)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		if len(met.found) == 0 {
			return nil, fmt.Errorf("process %d answered no request that could be seen within %s", t.pid, d)
		}
		return met.found, nil
	}
	chosen, unknown := met.named(names)
	for _, name := range unknown {
		more, err := t.search(name)
		if err != nil {
			return nil, met.beside(err)
		}
		chosen = append(chosen, more...)
	}
	return chosen, nil
}

// meet looks at who handles requests, and adds who was sampled.
func (t *Target) meet(ctx context.Context, d time.Duration) (*census, error) {
	stacks, err := t.met(ctx, d)
	if err != nil {
		return nil, err
	}
	c := newCensus(stacks)
	if len(t.sampled) > 0 {
		c.sampled(t.sampled, t.made())
	}
	return c, nil
}

// made returns the functions that the linker made, by frames without lines.
func (t *Target) made() map[cost.Frame]symbol {
	made := map[cost.Frame]symbol{}
	for fn := range t.table.Funcs() {
		push, _ := t.table.Push(fn)
		made[frameOf(pclntab.Frame{Func: fn.Name, File: fn.File, Decl: fn.Decl})] = symbol{fn.Name, push}
	}
	return made
}

// met returns the stacks on which requests are answered.
func (t *Target) met(ctx context.Context, d time.Duration) ([][]place, error) {
	inside := t.inside()
	var pushes, ids []uint64
	for i, p := range inside {
		pushes, ids = append(pushes, p.in.push), append(ids, uint64(i))
	}
	if len(pushes) == 0 {
		return nil, nil
	}
	dev, err := newDevice(t, 0)
	if err != nil {
		return nil, err
	}
	defer dev.Close()
	if err := errors.Join(dev.allow(d), dev.attach(dev.Look, pushes, ids)); err != nil {
		return nil, err
	}
	// A few looks: the first calls alone would show only the busiest handlers, and
	// what is gathered meanwhile has its limits.
	const looks = 8
	known := map[string]bool{}
	var stacks [][]place
	for range looks {
		if err := sleep(ctx, d/looks); err != nil {
			return nil, err
		}
		routes, err := dev.drain()
		if err != nil {
			return nil, err
		}
		for _, r := range routes {
			if key := fmt.Sprint(r); !known[key] && r.owner < len(inside) {
				known[key] = true
				stacks = append(stacks, append([]place{inside[r.owner]}, t.places(r.rets)...))
			}
		}
	}
	return stacks, nil
}

// inside returns the functions by whose callers it is seen who handles requests, each
// with a push: those that answer, and what may be a method of a gRPC service. Such a
// method answers by returning, so that nothing is called by which it could be met.
func (t *Target) inside() []place {
	methods := map[string]bool{}
	for fn := range t.table.Funcs() {
		rest, ok := cost.RPC(fn.Name)
		for ok { // where the service's name ends is not known: both may have underscores
			_, rest, ok = strings.Cut(rest, "_")
			methods[rest] = true
		}
	}
	delete(methods, "")
	var found []place
	for fn := range t.table.Funcs() {
		if !slices.Contains(answering[:], fn.Name) {
			_, own := ownerOf(cost.Frame{Func: fn.Name, File: fn.File, Decl: fn.Decl})
			if !own || !methods[fn.Name[strings.LastIndexByte(fn.Name, '.')+1:]] {
				continue
			}
		}
		push, ok := t.table.Push(fn)
		if !ok {
			continue
		}
		if p := t.places([]uint64{push + 1})[0]; len(p.frames) > 0 { // what the compiler made up has none
			found = append(found, p)
		}
	}
	return found
}

// pushes finds functions by their names and returns the addresses of their pushes.
func (t *Target) pushes(names []string) []uint64 {
	var pushes []uint64
	for fn := range t.table.Funcs() {
		if !slices.Contains(names, fn.Name) {
			continue
		}
		if push, ok := t.table.Push(fn); ok {
			pushes = append(pushes, push)
		}
	}
	return pushes
}

// search finds owners by name among all functions of the program.
func (t *Target) search(name string) ([]Watched, error) {
	var c census
	near := ""
	for fn := range t.table.Funcs() {
		f := cost.Frame{Func: fn.Name, File: fn.File, Decl: fn.Decl}
		w := Watched{Symbols: []string{fn.Name}}
		owner, ok := ownerOf(f)
		if w.Owner = owner; !ok {
			continue
		}
		if !goesBy(&w, name) {
			if near == "" && strings.Contains(strings.ToLower(fn.Name), strings.ToLower(name)) {
				near = owner.Name
			}
			continue
		}
		push, _ := t.table.Push(fn)
		c.add(owner, place{in: symbol{fn.Name, push}}, true)
	}
	if len(c.found) == 0 {
		err := fmt.Errorf("process %d has no function %q", t.pid, name)
		if near != "" {
			err = fmt.Errorf("%w; is it %q", err, near)
		}
		return nil, err
	}
	return c.found, nil
}

// Watch is a set of owners that is about to be watched. It is not safe for
// concurrent use; Close takes its probes away.
type Watch struct {
	t      *Target
	d      *device
	price  Price
	owners []Watched // those that can be watched
	refuse []Watched // those that cannot
	begins []uint64  // pushes of where requests begin
	routes []route
	known  map[string]bool
	marks  []mark  // by number
	looked float64 // calls a second when they were looked at
}

// NewWatch prepares to watch owners. At most 60 are watched at a time; the rest
// are refused with a reason.
func (t *Target) NewWatch(owners []Watched, p Price) (*Watch, error) {
	w := &Watch{t: t, price: p, known: map[string]bool{}, begins: t.pushes(beginning[:])}
	for _, o := range owners {
		if o.Reason == "" && len(w.owners) == maxOwners-4 {
			o.Reason = fmt.Sprintf("only %d owners can be watched at a time", maxOwners-4)
		}
		if o.Reason != "" {
			w.refuse = append(w.refuse, o)
			continue
		}
		w.owners = append(w.owners, o)
	}
	if len(w.owners) == 0 {
		return nil, errors.Join(errors.New("none of the owners can be watched"), refusals(w.refuse))
	}
	var err error
	if w.d, err = newDevice(t, p.Trap); err != nil {
		return nil, err
	}
	return w, nil
}

// refusals says why owners are not watched.
func refusals(owners []Watched) error {
	var errs []error
	for _, o := range owners {
		errs = append(errs, fmt.Errorf("%s is not watched: %s", o.Owner.Name, o.Reason))
	}
	return errors.Join(errs...)
}

// Close takes all probes away.
func (w *Watch) Close() error { return w.d.Close() }

// entries returns the addresses of the probes on beginnings, and the number of
// the owner of each; where requests begin is one owner more.
func (w *Watch) entries() (addrs, ids []uint64) {
	for i, o := range w.owners {
		for _, push := range o.pushes {
			addrs, ids = append(addrs, push), append(ids, uint64(i))
		}
	}
	for _, push := range w.begins {
		addrs, ids = append(addrs, push), append(ids, uint64(len(w.owners)))
	}
	return addrs, ids
}

// Look counts calls for a while, by one cheap probe a call, and learns who makes
// them. It forecasts what watching will cost.
func (w *Watch) Look(ctx context.Context, d time.Duration) (*Forecast, error) {
	addrs, ids := w.entries()
	if err := errors.Join(w.d.allow(d), w.d.attach(w.d.Look, addrs, ids)); err != nil {
		return nil, err
	}
	defer w.d.detach()
	begun, before, err := w.d.clock()
	if err != nil {
		return nil, err
	}
	if err := sleep(ctx, d); err != nil {
		return nil, err
	}
	ended, after, err := w.d.clock()
	if err != nil {
		return nil, err
	}
	took := ended.Sub(begun)
	if err := w.d.detach(); err != nil {
		return nil, err
	}
	if err := w.learn(); err != nil {
		return nil, err
	}
	counts, err := w.d.counts(len(w.owners) + 1)
	if err != nil {
		return nil, err
	}
	f := &Forecast{}
	for i, n := range counts {
		calls := float64(n) / took.Seconds()
		f.Hits += 2 * calls // its beginning, and the mark that ends it
		w.looked += calls
		if i < len(w.owners) {
			f.Calls = append(f.Calls, calls)
		}
	}
	if used := after - before; used > 0 {
		f.Share = f.Hits * w.price.Hit.Seconds() / (used.Seconds() / took.Seconds())
	}
	return f, nil
}

// learn takes the calls told of since the last time.
func (w *Watch) learn() error {
	routes, err := w.d.drain()
	if err != nil {
		return err
	}
	for _, r := range routes {
		if key := fmt.Sprint(r); !w.known[key] && len(w.routes) < maxSeen {
			w.known[key] = true
			w.routes = append(w.routes, r)
		}
	}
	return nil
}

// sleep waits, or returns why not.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// putCallers has the programs know the calls for whose end there is a mark.
func (w *Watch) putCallers(callers []uint64) error {
	for _, pc := range callers {
		if err := w.d.Callers.Update(pc+w.t.bias, uint8(1), ebpf.UpdateAny); err != nil {
			return fmt.Errorf("writing a BPF map: %w", err)
		}
	}
	return nil
}
