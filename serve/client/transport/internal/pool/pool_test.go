package pool_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarehq/tare/serve/client/transport/internal/pool"
)

// thing is what is open.
type thing struct {
	n            int
	closed, dead atomic.Bool
}

// close closes it, once.
func (t *thing) close() {
	if t.closed.Swap(true) {
		panic("closed twice")
	}
}

func newPool(o pool.Options[*thing]) *pool.Pool[*thing] {
	if o.Close == nil {
		o.Close = (*thing).close
	}
	o.Useless = func(t *thing) bool { return t.dead.Load() }
	if o.Idle == 0 {
		o.Idle, o.IdleTimeout = 10, time.Minute
	}
	return pool.New(o)
}

// TestOrder has those who wait be served in the order in which they came, by what becomes free
// or may be opened.
func TestOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(pool.Options[*thing]{Open: 2, Queue: 4, Wait: time.Minute})
		for range 2 {
			if one, is, err := p.Take(t.Context()); one != nil || is || err != nil {
				t.Fatalf("got %v, %t, %v, want a place", one, is, err)
			}
		}
		var served [4]string
		for i := range 4 {
			go func() {
				one, is, err := p.Take(t.Context())
				n := 0
				if is {
					n = one.n
				}
				served[i] = fmt.Sprint(is, " ", n, " ", err)
			}()
			synctest.Wait() // the next one comes later
		}
		if _, _, err := p.Take(t.Context()); err != pool.ErrFull {
			t.Errorf("the queue is full: got %v", err)
		}
		p.Keep(&thing{n: 7})
		p.Free()
		p.Keep(&thing{n: 8})
		p.Free()
		synctest.Wait()
		if want := [4]string{"true 7 <nil>", "false 0 <nil>", "true 8 <nil>", "false 0 <nil>"}; served != want {
			t.Errorf("got %q, want %q", served, want)
		}
	})
}

// TestGivesUp has who waited for too long, or whose context has ended, take nothing along.
func TestGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(pool.Options[*thing]{Open: 1, Queue: 9, Wait: time.Second})
		_, _, _ = p.Take(t.Context())
		begun := time.Now()
		if _, _, err := p.Take(t.Context()); err != pool.ErrLate || time.Since(begun) != time.Second {
			t.Errorf("got %v after %s", err, time.Since(begun))
		}
		gone := errors.New("gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Millisecond, func() { cancel(gone) })
		if _, _, err := p.Take(ctx); err != gone {
			t.Errorf("got %v, want why the context has ended", err)
		}
		p.Keep(&thing{n: 1})
		if one, is, err := p.Take(t.Context()); !is || one.n != 1 || err != nil {
			t.Errorf("those who gave up have taken it: %v, %t, %v", one, is, err)
		}
	})
}

// TestBound has many take and give back at once, some of which give up: never are more open
// than may be, and in the end all places are free.
func TestBound(t *testing.T) {
	const most, users = 3, 40
	var open, seen atomic.Int64
	p := newPool(pool.Options[*thing]{
		Open: most, Queue: users, Wait: 2 * time.Millisecond, Idle: 2, IdleTimeout: time.Minute,
		Close: func(t *thing) {
			open.Add(-1)
			t.close()
		},
	})
	use := func(i int) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if i%5 == 0 {
			time.AfterFunc(time.Duration(i)*10*time.Microsecond, cancel)
		}
		one, is, err := p.Take(ctx)
		if err != nil {
			return
		}
		if !is {
			one = &thing{}
			if n := open.Add(1); n > most {
				t.Errorf("%d are open", n)
			}
		}
		seen.Add(1)
		time.Sleep(time.Duration(i%3) * 100 * time.Microsecond)
		switch i % 4 {
		case 0:
			open.Add(-1)
			one.close()
			p.Free()
		case 1:
			if other, is := p.Instead(one); is {
				p.Keep(other)
			} else {
				p.Free()
			}
		default:
			p.Keep(one)
		}
	}
	var all sync.WaitGroup
	for i := range users {
		all.Go(func() {
			for j := range 50 {
				use(i + j)
			}
		})
	}
	all.Wait()
	if seen.Load() < users {
		t.Errorf("only %d uses", seen.Load())
	}
	p.CloseIdle()
	for range most {
		if _, is, err := p.Take(t.Context()); is || err != nil {
			t.Fatalf("a place is lost: %t, %v", is, err)
		}
	}
	if _, _, err := p.Take(t.Context()); err == nil {
		t.Error("there is a place too many")
	}
}

// TestIdle has the one used last be used next, and those that are too many, or idle for too
// long, be closed.
func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(pool.Options[*thing]{Idle: 2, IdleTimeout: time.Second})
		a, b, c := &thing{n: 1}, &thing{n: 2}, &thing{n: 3}
		for range 3 {
			_, _, _ = p.Take(t.Context())
		}
		p.Keep(a)
		time.Sleep(600 * time.Millisecond)
		p.Keep(b)
		p.Keep(c)
		if !c.closed.Load() || b.closed.Load() {
			t.Error("want the third closed")
		}
		time.Sleep(500 * time.Millisecond)
		if !a.closed.Load() || b.closed.Load() {
			t.Error("want the first closed")
		}
		if one, is, _ := p.Take(t.Context()); !is || one != b {
			t.Errorf("got %v", one)
		}
		if one, is := p.Instead(b); is || !b.closed.Load() {
			t.Errorf("got %v for one of no use", one)
		}
	})
}

// opener opens things, or not.
type opener struct {
	mu     sync.Mutex
	fails  bool
	things []*thing
	last   time.Time // when it was asked to
	tries  int
}

func (o *opener) open(context.Context) (*thing, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tries++
	o.last = time.Now()
	if o.fails {
		return nil, errors.New("refused")
	}
	one := &thing{n: len(o.things)}
	o.things = append(o.things, one)
	return one, nil
}

// opened are those that it has opened.
func (o *opener) opened() []*thing {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.things
}

// keepOpen has a pool keep some open until it is told to end.
func (o *opener) keepOpen(t *testing.T, p *pool.Pool[*thing], n int) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() { p.KeepOpen(ctx, n, o.open) })
	return func() {
		cancel()
		all.Wait()
	}
}

// TestKeepOpen has some be open before they are asked for, and be opened again once they have
// ended: at once if somebody notices, else within the time of a look.
func TestKeepOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, o := newPool(pool.Options[*thing]{Open: 5}), &opener{}
		defer o.keepOpen(t, p, 3)()
		synctest.Wait()
		if n := len(o.opened()); n != 3 {
			t.Fatalf("%d are open, want 3", n)
		}
		one, is, _ := p.Take(t.Context())
		if !is {
			t.Fatal("none is ready")
		}
		time.Sleep(10 * time.Second)
		if n := len(o.opened()); n != 3 {
			t.Fatalf("%d were opened while one was in use, want 3", n)
		}
		one.close()
		p.Free()
		synctest.Wait()
		if n := len(o.opened()); n != 4 {
			t.Errorf("%d were opened, want one for that which has ended", n)
		}
		o.opened()[0].dead.Store(true)
		time.Sleep(2 * time.Second)
		if n := len(o.opened()); n != 5 || !o.opened()[0].closed.Load() {
			t.Errorf("%d were opened, want one for the idle one that has ended", n)
		}
	})
}

// TestBackOff has what cannot be opened be tried less and less often, and one that ends at once
// likewise.
func TestBackOff(t *testing.T) {
	for _, fails := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			p, o := newPool(pool.Options[*thing]{}), &opener{fails: fails}
			defer o.keepOpen(t, p, 1)()
			for range 5 * 60 {
				time.Sleep(time.Second)
				for _, one := range o.opened() {
					one.dead.Store(true)
				}
			}
			o.mu.Lock()
			if o.tries < 8 || o.tries > 40 || time.Since(o.last) > 40*time.Second {
				t.Errorf("cannot be opened: %t: %d attempts in five minutes, the last %s ago", fails, o.tries, time.Since(o.last))
			}
			o.fails = false
			o.mu.Unlock()
			time.Sleep(90 * time.Second)
			if _, is, _ := p.Take(t.Context()); !is {
				t.Errorf("cannot be opened: %t: none is ready once they can be", fails)
			}
		})
	}
}

// TestEnds has nothing be left that was opened for nobody, and a rest be kept to.
func TestEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(pool.Options[*thing]{})
		late := &thing{}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			p.KeepOpen(ctx, 1, func(context.Context) (*thing, error) {
				time.Sleep(time.Second)
				return late, nil
			})
			close(done)
		}()
		time.Sleep(time.Millisecond)
		cancel()
		p.CloseIdle()
		<-done
		if !late.closed.Load() {
			t.Error("what was opened while it ended is open")
		}
		o := &opener{}
		defer o.keepOpen(t, p, 2)()
		synctest.Wait()
		p.CloseIdle()
		time.Sleep(20 * time.Second)
		if n := len(o.opened()); n != 2 {
			t.Errorf("%d were opened though they are in the way", n)
		}
		time.Sleep(20 * time.Second)
		if n := len(o.opened()); n != 4 {
			t.Errorf("%d were opened, want two again after a rest", n)
		}
	})
}
