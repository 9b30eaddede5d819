package past

import (
	"fmt"
	"testing"
	"time"

	"github.com/tarehq/tare/cost"
)

// stack is one of a request: what runs, and the handlers around it, innermost first. They
// begin on a line.
func stack(inner string, decl int, handlers ...string) cost.Stack {
	s := cost.Stack{Count: 1, Value: 1e6, Frames: []cost.Frame{{Func: inner}}}
	for _, h := range handlers {
		s.Frames = append(s.Frames, cost.Frame{Func: "shop.(*" + h + ").ServeHTTP", File: "/src/shop/shop.go", Line: decl + 3, Decl: decl})
	}
	for _, fn := range []string{"net/http.serverHandler.ServeHTTP", "net/http.(*conn).serve", "runtime.goexit"} {
		s.Frames = append(s.Frames, cost.Frame{Func: fn})
	}
	return s
}

var tenSeconds = cost.Window{Duration: 10 * time.Second}

// kinds are the owners of a bill that are in a request, by name.
func kinds(b *cost.Bill) map[string]string {
	all := map[string]string{}
	for _, it := range b.Items {
		if it.Where != "" {
			all[it.Owner] = it.Kind
		}
	}
	return all
}

// TestBill knows a middleware by the interval in which it was seen to call another owner, also
// in a build in which it lies elsewhere, and has nothing of that interval in a later bill.
func TestBill(t *testing.T) {
	c := New()
	const auth, orders = "shop.(*Auth).ServeHTTP", "shop.(*Orders).ServeHTTP"
	b := c.Bill([]cost.Stack{stack("runtime.mallocgc", 10, "Auth")}, tenSeconds)
	if got := kinds(b); len(got) != 1 || got[auth] != "handler" {
		t.Errorf("of what nobody knows yet: got %v", got)
	}
	for _, decl := range []int{10, 20} {
		b = c.Bill([]cost.Stack{stack("runtime.mallocgc", decl, "Orders", "Auth")}, tenSeconds)
		if got := kinds(b); got[auth] != "middleware" || got[orders] != "handler" {
			t.Errorf("line %d, both on one stack: got %v", decl, got)
		}
		for range 2 * overdue {
			b = c.Bill([]cost.Stack{stack("runtime.mallocgc", decl, "Auth")}, tenSeconds)
		}
		if got := kinds(b); len(got) != 1 || got[auth] != "middleware" || b.CPU*b.Seconds != 1e6 {
			t.Errorf("line %d, long after: got %v and %v ns, want one middleware and 1e6", decl, got, b.CPU*b.Seconds)
		}
	}
	if b := c.Bill(nil, tenSeconds); len(b.Items) != 0 || b.Seconds != 10 {
		t.Errorf("of no stack: got %+v", b)
	}
}

// TestAsLearned has bills of intervals be those that all the rules of the whole would make.
func TestAsLearned(t *testing.T) {
	c := New()
	var all []cost.Stack
	for k := range 60 {
		s := stack(fmt.Sprintf("runtime.f%d", k), 10, []string{"Orders", "Auth"}[k%2], "Gzip")
		if k%7 == 0 {
			s = stack("encoding/json.Marshal", 10, "Orders", "Auth", "Gzip")
		}
		all = append(all, s)
		b := c.Bill([]cost.Stack{s}, tenSeconds)
		want := cost.NewBill(all, nil, tenSeconds)
		for _, it := range b.Items {
			for _, other := range want.Items {
				if it.Owner == other.Owner && it.Where == other.Where && it.Kind != other.Kind {
					t.Errorf("interval %d: %s is a %s, want a %s", k, it.Owner, it.Kind, other.Kind)
				}
			}
		}
	}
}

// TestSeldomLearned learns anew if much is new, or something has been for long, and else not.
func TestSeldomLearned(t *testing.T) {
	c := New()
	var first []cost.Stack
	for k := range 40 {
		first = append(first, stack("runtime.mallocgc", k, "Orders", "Auth"))
	}
	bill := func(stacks ...cost.Stack) *cost.Rules {
		c.Bill(stacks, tenSeconds)
		return c.Rules()
	}
	rules := bill(first...)
	for k := range 3 * overdue {
		if bill(first[k%len(first)]) != rules {
			t.Fatal("rules were learned anew of what is known")
		}
	}
	if bill(stack("runtime.mallocgc", 100, "Orders")) != rules {
		t.Error("rules were learned anew for one chain of forty")
	}
	for range overdue {
		bill(first[0])
	}
	second := c.Rules()
	if second == rules {
		t.Errorf("a new chain waits for more than %d intervals", overdue)
	}
	for k := range 5 {
		if got := bill(stack("runtime.mallocgc", 200+k, "Orders")); got != second {
			t.Errorf("rules were learned anew for %d chains of 41", k+1)
		}
	}
	if bill(stack("runtime.mallocgc", 300, "Orders")) == second {
		t.Error("rules were not learned anew for six chains of 41")
	}
}

// TestTelling learns at once of new functions of the program and of what they call, and not of
// what the standard library does for those.
func TestTelling(t *testing.T) {
	c := New()
	inner := func(k int, callee string) cost.Stack {
		s := stack(callee, 10, "Orders", "Auth")
		s.Frames = append([]cost.Frame{{Func: "reflect.Value.Call"}}, s.Frames...)
		for d := range 3 {
			s.Frames = append([]cost.Frame{{Func: fmt.Sprintf("encoding/json.f%d", k+d)}}, s.Frames...)
		}
		return s
	}
	var first []cost.Stack
	for k := range 8 {
		first = append(first, stack("runtime.mallocgc", k, "Orders"))
	}
	c.Bill(append(first, inner(0, "encoding/json.Marshal")), tenSeconds)
	rules := c.Rules()
	for k := range overdue / 2 {
		if c.Bill([]cost.Stack{inner(10*k, "encoding/json.Marshal")}, tenSeconds); c.Rules() != rules {
			t.Fatalf("rules were learned anew for the %d. way through encoding/json", k+1)
		}
	}
	for k, callee := range []string{"io.WriteString", "fmt.Fprint"} { // two of nine or ten
		c.Bill([]cost.Stack{inner(0, callee)}, tenSeconds)
		if again := c.Rules() != rules; again != (k == 1) {
			t.Errorf("after %d new calls of the handler's: learned anew: %t", k+1, again)
		}
	}
}

// TestRemember keeps each chain once, the latest first, whatever the runtime did inside it.
func TestRemember(t *testing.T) {
	c := New()
	idle := cost.Stack{Frames: []cost.Frame{{Func: "runtime.gcBgMarkWorker"}}}
	c.Bill([]cost.Stack{stack("runtime.mallocgc", 1, "A"), stack("[kernel] tcp_sendmsg", 1, "A"), stack("internal/runtime/maps.grow", 1, "B"), idle}, tenSeconds)
	if len(c.all) != 2 || c.all[0].Frames[0].Func != "shop.(*B).ServeHTTP" || c.all[1].Count != 2 || c.all[0].Value != 0 {
		t.Errorf("got %+v, want two chains, one of them seen twice", c.all)
	}
	c.Bill([]cost.Stack{stack("runtime.memmove", 1, "A")}, tenSeconds)
	if len(c.all) != 2 || c.all[0].Frames[0].Func != "shop.(*A).ServeHTTP" || c.all[0].Count != 3 {
		t.Errorf("got %+v, want that of A first", c.all)
	}
	for k := range 2 * remembered {
		c.Bill([]cost.Stack{stack("runtime.memmove", k, "C")}, tenSeconds)
	}
	if n := len(c.all); n != remembered || c.all[0].Frames[0].Decl != 2*remembered-1 {
		t.Errorf("got %d chains, %+v the latest, want the latest %d", n, c.all[0], remembered)
	}
}

// BenchmarkBill charges three stacks of a service of which a hundred chains are known; and has
// the plain alternative beside it, which learns from all of them in each interval.
func BenchmarkBill(b *testing.B) {
	var all []cost.Stack
	for k := range remembered {
		s := stack("runtime.mallocgc", 10, "Orders", "Auth", "Gzip", "Log")
		for d := range 10 {
			s.Frames = append([]cost.Frame{{Func: fmt.Sprintf("encoding/json.(*encodeState).f%d", (k+d)%17), File: "/go/src/encoding/json/encode.go", Decl: k}}, s.Frames...)
		}
		all = append(all, s)
	}
	b.Run("by=known", func(b *testing.B) {
		c := New()
		c.Bill(all, tenSeconds)
		b.ReportAllocs()
		for b.Loop() {
			c.Bill(all[:3], tenSeconds)
		}
	})
	b.Run("by=all", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			cost.NewBill(all, nil, tenSeconds)
		}
	})
}

// BenchmarkTail charges intervals of fifty stacks of a service, of whose chains there is no end:
// what the standard library does for its handlers is mostly new.
func BenchmarkTail(b *testing.B) {
	next := uint64(1)
	draw := func(n uint64) uint64 { // one of n, the first ones more often
		next = next*6364136223846793005 + 1442695040888963407
		x := float64(next>>11) / (1 << 53)
		return uint64(x * x * x * float64(n))
	}
	c := New()
	stacks := make([]cost.Stack, 50)
	learned, intervals := 0, 0
	b.ReportAllocs()
	for b.Loop() {
		for i := range stacks {
			s := stack("encoding/json.Marshal", 10*int(draw(6)), "Orders", "Auth", "Gzip", "Log")
			s.Frames = append([]cost.Frame{{Func: "encoding/json.(*encodeState).marshal", File: "/go/src/encoding/json/encode.go", Decl: 3}}, s.Frames...)
			for range 8 {
				s.Frames = append([]cost.Frame{{Func: fmt.Sprintf("encoding/json.f%d", draw(30)), File: "/go/src/encoding/json/encode.go", Decl: 3}}, s.Frames...)
			}
			stacks[i] = s
		}
		before := c.Rules()
		c.Bill(stacks, tenSeconds)
		if intervals++; c.Rules() != before {
			learned++
		}
	}
	b.ReportMetric(float64(learned)/float64(intervals), "learned/op")
}
