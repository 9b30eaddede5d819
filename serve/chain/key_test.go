package chain_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/tarehq/tare/serve/chain"
)

var (
	userKey  = chain.NewKey[*user]("user")
	idKey    = chain.NewKey[string]("id")
	errKey   = chain.NewKey[error]("error")
	startKey = chain.NewKey[time.Time]("start")
)

// around runs f in the middle of a chain, on a plain server or one whose engine
// keeps the state.
func around(t *testing.T, slotted bool, f func(w http.ResponseWriter, r *http.Request)) {
	t.Helper()
	r, w := request(t.Context()), http.ResponseWriter(httptest.NewRecorder())
	if slotted {
		kept := &slot{Context: t.Context()}
		r, w = request(kept), &answerOf{w, kept}
	}
	ran := false
	chain.Must(chain.New(pass).Then(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ran = true
		f(w, r)
	}))).ServeHTTP(w, r)
	if !ran {
		t.Error("the handler did not run")
	}
}

func both(t *testing.T, f func(t *testing.T, slotted bool)) {
	t.Run("elsewhere", func(t *testing.T) { f(t, false) })
	t.Run("slot", func(t *testing.T) { f(t, true) })
}

func TestValues(t *testing.T) {
	both(t, func(t *testing.T, slotted bool) {
		around(t, slotted, func(_ http.ResponseWriter, r *http.Request) {
			if v, ok := userKey.Value(r); ok {
				t.Errorf("before it is set: got %v", v)
			}
			now := time.Now()
			if !userKey.Set(r, ada) || !idKey.Set(r, "1") || !errKey.Set(r, nil) || !startKey.Set(r, now) {
				t.Error("Set: got false in a chain")
			}
			if got := idKey.With(r, "2"); got != r {
				t.Error("With: got a copy of the request in a chain")
			}
			// What derives from the request's context finds the same.
			ctx := context.WithValue(r.Context(), contextKey(1), "other")
			for _, r := range []*http.Request{r, r.WithContext(ctx)} {
				if v, ok := userKey.Value(r); v != ada || !ok {
					t.Errorf("user: got %v, %t", v, ok)
				}
				if v, ok := idKey.Value(r); v != "2" || !ok {
					t.Errorf("id: got %q, %t, want what was set last", v, ok)
				}
				if v, ok := errKey.Value(r); v != nil || !ok {
					t.Errorf("error: got %v, %t, want nil that was set", v, ok)
				}
				if v, ok := startKey.Value(r); !v.Equal(now) || !ok {
					t.Errorf("start: got %v, %t", v, ok)
				}
			}
			if got := ctx.Value(userKey); got != ada {
				t.Errorf("by the context: got %v", got)
			}
			if got := ctx.Value(idKey); got != "2" {
				t.Errorf("by the context: got %v", got)
			}
			if got := ctx.Value(contextKey(2)); got != nil {
				t.Errorf("another's key: got %v", got)
			}
			if !idKey.Set(r.WithContext(ctx), "3") {
				t.Error("Set by a derived context: got false")
			}
			if v, _ := idKey.Value(r); v != "3" {
				t.Errorf("set by a derived context: got %q", v)
			}
		})
	})
}

// Any number of values and of changes to them are kept; a key that changes
// often takes no room for it.
func TestManyValues(t *testing.T) {
	both(t, func(t *testing.T, slotted bool) {
		around(t, slotted, func(_ http.ResponseWriter, r *http.Request) {
			counter := chain.NewKey[int]("counter")
			all := make([]*chain.Key[string], 100)
			for i := range all {
				all[i] = chain.NewKey[string](fmt.Sprint(i))
				all[i].Set(r, fmt.Sprint("first ", i))
				counter.Set(r, i)
			}
			for i, k := range all {
				if got, ok := k.Value(r); got != fmt.Sprint("first ", i) || !ok {
					t.Fatalf("value %d: got %q, %t", i, got, ok)
				}
				k.Set(r, fmt.Sprint("second ", i))
			}
			for i, k := range all {
				if got := r.Context().Value(k); got != fmt.Sprint("second ", i) {
					t.Fatalf("value %d: got %v", i, got)
				}
			}
			if n := testing.AllocsPerRun(1000, func() { counter.Set(r, 7) }); n != 0 {
				t.Errorf("changing a value: got %v allocations", n)
			}
			if got, _ := counter.Value(r); got != 7 {
				t.Errorf("counter: got %d", got)
			}
		})
	})
}

// Values of every kind are found as they were set, a nil too, in whatever place
// the key's number has: made one by one, its keys come to the end of all cells.
func TestKinds(t *testing.T) {
	for range 100 {
		tryKind(t, "pointer", ada, func(v *user) bool { return v == ada })
		tryKind(t, "nil pointer", (*user)(nil), func(v *user) bool { return v == nil })
	}
	m, c := map[string]int{"a": 1}, make(chan int, 7)
	tryKind(t, "map", m, func(v map[string]int) bool { return v["a"] == 1 })
	tryKind(t, "nil map", map[string]int(nil), func(v map[string]int) bool { return v == nil })
	tryKind(t, "channel", c, func(v chan int) bool { return v == c })
	tryKind(t, "receiving end", (<-chan int)(c), func(v <-chan int) bool { return cap(v) == 7 })
	tryKind(t, "function", func() *user { return ada }, func(v func() *user) bool { return v() == ada })
	tryKind(t, "nil function", (func())(nil), func(v func()) bool { return v == nil })
	tryKind(t, "interface", fmt.Stringer(userKey), func(v fmt.Stringer) bool { return v == userKey })
	tryKind(t, "text", "x", func(v string) bool { return v == "x" })
	tryKind(t, "flag", false, func(v bool) bool { return !v })
	tryKind(t, "nothing", struct{}{}, func(struct{}) bool { return true })
	tryKind(t, "list", []int{1, 2}, func(v []int) bool { return len(v) == 2 && v[1] == 2 })
	tryKind(t, "pointers side by side", [2]*user{nil, ada}, func(v [2]*user) bool { return v[1] == ada })
}

func tryKind[T any](t *testing.T, name string, v T, same func(T) bool) {
	t.Helper()
	key := chain.NewKey[T](name)
	for _, slotted := range []bool{false, true} {
		around(t, slotted, func(_ http.ResponseWriter, r *http.Request) {
			if got, ok := key.Value(r); ok {
				t.Errorf("%s: got %v before it was set", name, got)
			}
			if got := r.Context().Value(key); got != nil {
				t.Errorf("%s: got %v before it was set, by the context", name, got)
			}
			for range 2 {
				if !key.Set(r, v) {
					t.Errorf("%s: Set: got false", name)
				}
				if got, ok := key.Value(r); !ok || !same(got) {
					t.Errorf("%s: got %v, %t", name, got, ok)
				}
				if got, ok := r.Context().Value(key).(T); !ok || !same(got) {
					t.Errorf("%s: got %v, %t, by the context", name, got, ok)
				}
			}
		})
	}
}

func TestOutsideOfChains(t *testing.T) {
	r := request(t.Context())
	if userKey.Set(r, ada) {
		t.Error("Set: got true outside of a chain")
	}
	with := userKey.With(r, ada)
	if _, ok := userKey.Value(r); ok || with == r {
		t.Error("With changed the request")
	}
	if got, ok := userKey.Value(with); got != ada || !ok {
		t.Errorf("got %v, %t", got, ok)
	}
	// A place that no chain has taken changes nothing.
	r = request(slotFor(t.Context(), new(chain.State)))
	if userKey.Set(r, ada) || userKey.With(r, ada) == r {
		t.Error("an engine's place was taken for a chain")
	}
	// A chain further in finds it, too.
	chain.Must(chain.New().Then(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if got, ok := userKey.Value(r); got != ada || !ok {
			t.Errorf("in a chain: got %v, %t", got, ok)
		}
	}))).ServeHTTP(httptest.NewRecorder(), with)
}

// What knows nothing of chains finds what a key of KeyOf sets, and the key finds
// what that puts into the context, the nearest first.
func TestKeyOf(t *testing.T) {
	key := chain.KeyOf[string](contextKey(7))
	both(t, func(t *testing.T, slotted bool) {
		around(t, slotted, func(_ http.ResponseWriter, r *http.Request) {
			old := r.WithContext(context.WithValue(r.Context(), contextKey(7), "theirs"))
			if got, ok := key.Value(old); got != "theirs" || !ok {
				t.Errorf("theirs: got %q, %t", got, ok)
			}
			key.Set(r, "ours")
			if got := r.Context().Value(contextKey(7)); got != "ours" {
				t.Errorf("ours by their key: got %v", got)
			}
			if got := r.Context().Value(contextKey(8)); got != nil {
				t.Errorf("by another key: got %v", got)
			}
			if got, ok := key.Value(old); got != "theirs" || !ok {
				t.Errorf("theirs, nearer than ours: got %q, %t", got, ok)
			}
			if key.Set(old, "unseen") {
				t.Error("Set behind theirs: got true, and cannot be seen")
			}
			if got, ok := key.Value(key.With(old, "newest")); got != "newest" || !ok {
				t.Errorf("ours, nearer than theirs: got %q, %t", got, ok)
			}
			if got, _ := key.Value(r); got != "newest" {
				t.Errorf("further out: got %q", got)
			}
			derived := r.WithContext(context.WithValue(r.Context(), contextKey(8), "another's"))
			for _, v := range []string{"once", "again"} {
				if !key.Set(derived, v) {
					t.Errorf("Set %q by a derived context that has nothing nearer: got false", v)
				}
				if got := derived.Context().Value(contextKey(7)); got != v {
					t.Errorf("by the derived context: got %v, want %q", got, v)
				}
			}
		})
	})
	r := key.With(request(t.Context()), "v")
	if got := r.Context().Value(contextKey(7)); got != "v" {
		t.Errorf("outside of a chain: got %v", got)
	}
}

// Two keys of KeyOf for one key of others are one, of whatever types.
func TestKeysOfOne(t *testing.T) {
	type foreign struct{}
	one, two, number := chain.KeyOf[string](foreign{}), chain.KeyOf[string](foreign{}), chain.KeyOf[int](foreign{})
	both(t, func(t *testing.T, slotted bool) {
		around(t, slotted, func(_ http.ResponseWriter, r *http.Request) {
			want := func(text string, n int, any any) {
				t.Helper()
				for _, k := range []*chain.Key[string]{one, two} {
					if got, ok := k.Value(r); got != text || ok != (text != "") {
						t.Errorf("as text: got %q, %t, want %q", got, ok, text)
					}
				}
				if got, ok := number.Value(r); got != n || ok != (n != 0) {
					t.Errorf("as a number: got %d, %t, want %d", got, ok, n)
				}
				if got := r.Context().Value(foreign{}); got != any {
					t.Errorf("by the context: got %v, want %v", got, any)
				}
			}
			want("", 0, nil)
			one.With(r, "old")
			want("old", 0, "old")
			two.With(r, "new")
			want("new", 0, "new")
			number.With(r, 7)
			want("", 7, 7)
			one.With(r, "text again")
			want("text again", 0, "text again")
		})
	})
}

func TestKeyNames(t *testing.T) {
	if got := fmt.Sprint(userKey, chain.KeyOf[int](contextKey(1))); got != "user chain_test.contextKey" {
		t.Errorf("got %q", got)
	}
}

// An outer layer sees what an inner one found out.
func TestValuesReachOutwards(t *testing.T) {
	var seen *user
	log := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(w, r)
			seen, _ = userKey.Value(r)
		})
	}
	auth := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(w, userKey.With(r, ada)) })
	}
	h := chain.Must(chain.New(log, auth).Then(http.HandlerFunc(answerPong)))
	h.ServeHTTP(httptest.NewRecorder(), request(t.Context()))
	if seen != ada {
		t.Errorf("got %v, want what auth set", seen)
	}
}

// A request that a handler keeps goes on to have its values, while others are
// served: under the race detector.
func TestKeptRequests(t *testing.T) {
	const requests = 200
	var kept sync.WaitGroup
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.URL.Query().Get("id")
		idKey.Set(r, id)
		_, rec := chain.Record(w)
		_, _ = io.WriteString(w, id)
		kept.Go(func() {
			for range 50 {
				if got, _ := idKey.Value(r); got != id {
					t.Errorf("kept request %s: got %q", id, got)
				}
				if got := r.Context().Value(idKey); got != id {
					t.Errorf("kept request %s, by its context: got %v", id, got)
				}
				userKey.Set(r, ada)
				if rec.Bytes() != int64(len(id)) {
					t.Errorf("kept request %s: got %d bytes", id, rec.Bytes())
				}
			}
		})
	})
	srv := httptest.NewServer(chain.Must(chain.New(pass, pass).Then(handler)))
	defer srv.Close()
	var clients sync.WaitGroup
	for c := range 4 {
		clients.Go(func() {
			for i := range requests / 4 {
				id := fmt.Sprint(c, "-", i)
				if got := get(t, srv.Client(), srv.URL+"/?id="+id); got != id {
					t.Errorf("got %q, want %q", got, id)
				}
			}
		})
	}
	clients.Wait()
	kept.Wait()
}

func get(t *testing.T, c *http.Client, url string) string {
	res, err := c.Get(url)
	if err != nil {
		t.Error(err)
		return ""
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Error(err)
	}
	return string(body)
}

// A layer that timed out may set values while a layer outside of it looks, and
// two may set at once: under the race detector.
func TestConcurrentValues(t *testing.T) {
	both(t, func(t *testing.T, slotted bool) {
		around(t, slotted, func(_ http.ResponseWriter, r *http.Request) {
			var all sync.WaitGroup
			for i, k := range keys[:40] {
				all.Go(func() {
					own := &user{fmt.Sprint(i)}
					for range 30 {
						k.Set(r, own)
						idKey.Set(r, own.Name)
						if got, ok := k.Value(r); got != own || !ok {
							t.Errorf("key %d: got %v, %t", i, got, ok)
						}
						if got := r.Context().Value(k); got != own {
							t.Errorf("key %d by the context: got %v", i, got)
						}
						if got, ok := idKey.Value(r); got == "" || !ok {
							t.Errorf("shared key: got %q, %t", got, ok)
						}
					}
				})
			}
			all.Wait()
		})
	})
}

// What answers to another writer than the chain's has a state of its own: the
// parts of a batch do not share users.
func TestSubrequests(t *testing.T) {
	both(t, func(t *testing.T, slotted bool) {
		part := chain.Must(chain.New(pass).Then(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			name, _ := idKey.Value(r) // of the batch, until it is set
			idKey.Set(r, name+r.URL.Path)
			w.WriteHeader(http.StatusAccepted)
			if _, rec := chain.Record(w); rec.Status() != http.StatusAccepted {
				t.Errorf("part %s: got status %d", r.URL.Path, rec.Status())
			}
			got, _ := idKey.Value(r)
			_, _ = io.WriteString(w, got)
		})))
		around(t, slotted, func(w http.ResponseWriter, r *http.Request) {
			idKey.Set(r, "batch")
			var parts sync.WaitGroup
			for i := range 8 {
				parts.Go(func() {
					sub := r.Clone(r.Context())
					sub.URL.Path = fmt.Sprint("/", i)
					rec := httptest.NewRecorder()
					part.ServeHTTP(rec, sub)
					if got, want := rec.Body.String(), fmt.Sprint("batch/", i); got != want {
						t.Errorf("part %d: got %q, want %q", i, got, want)
					}
				})
			}
			parts.Wait()
			if got, _ := idKey.Value(r); got != "batch" {
				t.Errorf("batch: got %q", got)
			}
			if _, rec := chain.Record(w); rec.Written() {
				t.Error("the batch's recorder saw the parts' answers")
			}
			// A part that answers to the batch's own client shares all.
			r.URL.Path = "/x"
			part.ServeHTTP(w, r)
			if _, rec := chain.Record(w); rec.Status() != http.StatusAccepted {
				t.Errorf("batch: got status %d", rec.Status())
			}
			if got, _ := idKey.Value(r); got != "batch/x" {
				t.Errorf("batch: got %q, want what its own part has set", got)
			}
		})
	})
}

// http.TimeoutHandler serves what is inside in another goroutine, on another
// writer, which may go on after the answer.
func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := make(chan struct{})
		inner := chain.Must(chain.New(pass).Then(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			time.Sleep(time.Second)
			userKey.Set(r, ada)
			_, _ = w.Write(pong)
			close(late)
		})))
		var status int
		outer := chain.New(func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, rec := chain.Record(w)
				next.ServeHTTP(w, r)
				status = rec.Status()
			})
		}, func(next http.Handler) http.Handler { return http.TimeoutHandler(next, time.Second, "late") })
		w := httptest.NewRecorder()
		chain.Must(outer.Then(inner)).ServeHTTP(w, request(t.Context()))
		if status != http.StatusServiceUnavailable || w.Body.String() != "late" {
			t.Errorf("got %d, %q", status, w.Body)
		}
		<-late
	})
}

// A state that an engine reuses shows nothing of the last request.
func TestReset(t *testing.T) {
	s := new(chain.State)
	ctx := slotFor(t.Context(), s)
	alias := chain.KeyOf[string](contextKey(9))
	r := request(ctx)
	for round := range 3 {
		h := chain.Must(chain.New(pass).Then(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if v, ok := idKey.Value(r); ok {
				t.Errorf("round %d: got %q", round, v)
			}
			if v := r.Context().Value(contextKey(9)); v != nil {
				t.Errorf("round %d: got %v", round, v)
			}
			_, rec := chain.Record(w)
			if rec.Written() || rec.Bytes() != 0 || !rec.First().IsZero() {
				t.Errorf("round %d: got %+v", round, rec)
			}
			rec.Clock(time.Now)
			for i := range 20 {
				keys[i].Set(r, ada)
			}
			idKey.Set(r, fmt.Sprint("secret", round))
			alias.Set(r, "secret")
			_, _ = w.Write(pong)
		})))
		h.ServeHTTP(&answerOf{httptest.NewRecorder(), ctx}, r)
		s.Reset()
	}
}

// Nor does it keep anything of it alive, in the room for values or past it.
func TestResetForgets(t *testing.T) {
	type boxed struct{ u, other *user }
	plain, box := chain.NewKey[*user]("plain"), chain.NewKey[boxed]("box")
	late, alias := chain.NewKey[boxed]("late"), chain.KeyOf[*user](contextKey(8))
	for _, withBoxes := range []bool{false, true} {
		s := new(chain.State)
		kept := slotFor(t.Context(), s)
		r := request(kept)
		chain.Must(chain.New(pass).Then(http.HandlerFunc(answerPong))).ServeHTTP(&answerOf{&discard{http.Header{}}, kept}, r)
		var held []weak.Pointer[user]
		secret := func() *user {
			u := &user{"secret"}
			held = append(held, weak.Make(u))
			return u
		}
		if !plain.Set(r, secret()) {
			t.Fatal("Set: got false in a chain")
		}
		if withBoxes {
			box.Set(r, boxed{u: secret()})
		}
		for i := range 20 {
			keys[i].Set(r, secret())
		}
		alias.Set(r, secret())
		if withBoxes {
			late.Set(r, boxed{other: secret()})
		}
		s.Reset()
		runtime.GC()
		for i, p := range held {
			if p.Value() != nil {
				t.Errorf("boxes %t: value %d is still held", withBoxes, i)
			}
		}
		runtime.KeepAlive(s)
	}
}

// allocs returns how often a request of the mode allocates.
func allocs(b testing.TB, kind string, depth int, mode string) float64 {
	b.Helper()
	h := chain.Must(chain.New(stack(kind, depth)...).Then(http.HandlerFunc(answerPong)))
	s, more := new(chain.State), new(chain.Room)
	kept := slotFor(b.Context(), s)
	r, w := request(kept), &answerOf{&discard{http.Header{}}, kept}
	if mode == "elsewhere" {
		r = request(b.Context())
	}
	return testing.AllocsPerRun(100, func() {
		switch mode {
		case "reuse":
			s.Reset()
		case "fresh":
			*s = chain.State{}
		case "lent":
			*s, *more = chain.State{}, chain.Room{}
			s.Lend(more)
		}
		h.ServeHTTP(w, r)
	})
}

// An engine learns from a request which memory its next ones need.
func TestCrowded(t *testing.T) {
	for depth, want := range map[int]bool{0: false, 16: false, 17: true, 50: true} {
		s := new(chain.State)
		kept := slotFor(t.Context(), s)
		h := chain.Must(chain.New(stack("value", depth)...).Then(http.HandlerFunc(answerPong)))
		h.ServeHTTP(&answerOf{&discard{http.Header{}}, kept}, request(kept))
		if got := s.Crowded(); got != want {
			t.Errorf("%d values: got %t, want %t", depth, got, want)
		}
	}
}

// TestAllocations holds the budget: nothing where the engine keeps the state, the state
// with the request's copy elsewhere, and once more for many values where the state is
// not reused, nor room for them lent.
func TestAllocations(t *testing.T) {
	for _, kind := range []string{"noop", "value", "record"} {
		for _, depth := range []int{0, 1, 2, 5, 10, 12, 16, 17, 20, 50} {
			many, some := 0.0, 1.0
			if kind == "value" && depth > 16 {
				many = 1
			}
			if depth == 0 {
				some = 0
			}
			for mode, want := range map[string]float64{"reuse": 0, "fresh": many, "lent": 0, "elsewhere": some + many} {
				if got := allocs(t, kind, depth, mode); got != want {
					t.Errorf("%d %s layers, %s: got %v allocations, want %v", depth, kind, mode, got, want)
				}
			}
		}
	}
}

// TestAllocationsWithoutKeys holds that a program which has no keys pays for nothing but
// the recorder, where a layer asks for it.
func TestAllocationsWithoutKeys(t *testing.T) {
	defer chain.ForgetKeys()()
	for _, depth := range []int{1, 10, 50} {
		for kind, want := range map[string]float64{"noop": 0, "record": 1} {
			if got := allocs(t, kind, depth, "elsewhere"); got != want {
				t.Errorf("%d %s layers: got %v allocations, want %v", depth, kind, got, want)
			}
		}
	}
}

// TestBoxes: a value that is no pointer takes one allocation, and none where the
// engine reuses requests.
func TestBoxes(t *testing.T) {
	s := new(chain.State)
	kept := slotFor(t.Context(), s)
	now := time.Now()
	h := chain.Must(chain.New(pass).Then(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		startKey.Set(r, now)
		startKey.Set(r, now.Add(time.Second))
		if got, ok := startKey.Value(r); !ok || !got.Equal(now.Add(time.Second)) {
			t.Errorf("got %v, %t, want the second value", got, ok)
		}
	})))
	r, w := request(kept), &answerOf{&discard{http.Header{}}, kept}
	for reuse, want := range map[bool]float64{true: 0, false: 1} {
		got := testing.AllocsPerRun(100, func() {
			if s.Reset(); !reuse {
				*s = chain.State{}
			}
			h.ServeHTTP(w, r)
		})
		if got != want {
			t.Errorf("reuse %t: got %v allocations, want %v", reuse, got, want)
		}
	}
}

// TestSetOverOlder sets a value where a layer outside of the chain kept one, in a
// place that an engine has. The context finds the newer, as the key does.
func TestSetOverOlder(t *testing.T) {
	key := chain.NewKey[*string]("user")
	older, newer := "older", "newer"
	h := chain.Must(chain.New(pass).Then(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if got := r.Context().Value(key); got != any(&older) {
			t.Errorf("before Set: context has %v, want the older value", got)
		}
		if !key.Set(r, &newer) {
			t.Error("Set: got false")
		}
		if got, _ := key.Value(r); got != &newer {
			t.Errorf("key has %v, want the newer value", got)
		}
		if got := r.Context().Value(key); got != any(&newer) {
			t.Errorf("context has %v, want the newer value", got)
		}
	})))
	place := slotFor(t.Context(), new(chain.State))
	r := httptest.NewRequest(http.MethodGet, "/", nil).WithContext(place)
	h.ServeHTTP(&answerOf{httptest.NewRecorder(), place}, key.With(r, &older))
}
