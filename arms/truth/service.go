package main

import (
	"errors"
	"time"
)

// service says how long requests are held.
type service struct {
	work  time.Duration // of most requests
	slow  time.Duration // of the others
	share float64       // of the slow ones, 0 to 1
	stall time.Duration // how long nothing is answered; 0: never
	every time.Duration // from the start of a stall to that of the next
}

func (s service) validate() error {
	switch {
	case s.work < 0 || s.slow < 0 || s.stall < 0:
		return errors.New("--work, --slow and --stall are not negative")
	case !(s.share >= 0 && s.share <= 1):
		return errors.New("--slow-share is a share from 0 to 1")
	case s.stall > 0 && s.every <= s.stall:
		return errors.New("--every must be longer than --stall, else nothing is ever answered")
	}
	return nil
}

// quantum is at most the shortest time for which a request is held. Requests
// held for less than 100 µs are not worth waking up for all the time, and may
// be held that much longer.
func (s service) quantum() time.Duration {
	q := time.Millisecond
	if s.work > 0 {
		q = min(q, s.work)
	}
	if s.slow > 0 && s.share > 0 {
		q = min(q, s.slow)
	}
	return max(q, 100*time.Microsecond)
}

// held is for how long request n is held. The slow ones are spread by a hash
// (SplitMix64's finish): at even steps they could fall on the same connection
// every time.
func (s service) held(n uint64) time.Duration {
	n *= 0x9e3779b97f4a7c15
	n = (n ^ n>>30) * 0xbf58476d1ce4e5b9
	n = (n ^ n>>27) * 0x94d049bb133111eb
	n ^= n >> 31
	if float64(n)/(1<<64) < s.share {
		return s.slow
	}
	return s.work
}

// end is when work begun at t is done, both counted from the first request:
// nothing is done during a stall. Stalls begin half a period after the first
// request and then each period.
func (s service) end(t, work time.Duration) time.Duration {
	if s.stall == 0 {
		return t + work
	}
	for {
		next := s.every / 2
		if t >= next {
			since := (t - next) % s.every
			next = t - since + s.every
			t += max(0, s.stall-since)
		}
		if work <= next-t {
			return t + work
		}
		work -= next - t
		t = next
	}
}
