package term_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarehq/tare/serve/internal/term"
)

type request struct{ expired int }

func (r *request) Expire() { r.expired++ }

func TestTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at term.Term
		a, b := new(request), new(request)
		over := func(what string, r *request, want int) {
			t.Helper()
			time.Sleep(2 * time.Second)
			synctest.Wait()
			if r.expired != want {
				t.Errorf("%s: expired %d times, want %d", what, r.expired, want)
			}
		}
		at.Wait(a)
		over("without an end", a, 0)
		soon := time.Now().Add(time.Second)
		at.Set(a, soon)
		if at.EndOf(a) != soon || !at.EndOf(b).IsZero() {
			t.Errorf("ends %v and %v, want %v and none", at.EndOf(a), at.EndOf(b), soon)
		}
		over("while nobody waits", a, 0)
		at.Set(a, time.Now().Add(time.Second))
		at.Wait(b)
		over("while another waits", a, 0)
		at.Wait(a)
		over("late", a, 1)
		if at.EndOf(a).IsZero() {
			t.Error("an end that is over is not known any more")
		}
		at.Set(a, time.Now().Add(time.Second))
		at.Wait(a)
		at.Halt(a)
		over("halted", a, 1)
		at.Set(a, time.Now().Add(time.Second))
		at.Wait(a)
		at.Set(a, time.Time{})
		over("taken away", a, 1)
		at.Set(b, time.Now().Add(time.Second))
		at.Wait(b)
		at.Set(a, time.Time{}) // by one that is late
		at.Halt(a)
		over("left alone by another", b, 1)
	})
}
