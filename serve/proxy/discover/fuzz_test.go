package discover_test

import (
	"testing"
	"time"

	"github.com/tarehq/tare/serve/proxy/discover"
)

// FuzzTTL has no message be read beyond its end, nor a time be made up.
func FuzzTTL(f *testing.F) {
	s := &server{asked: map[string]int{}, records: map[string][]record{"x.": {a("192.0.2.1", 7), a("192.0.2.2", 5)}}}
	question := append([]byte{0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0}, append(name("x."), 0, typeA, 0, 1)...)
	whole := s.answer(question, "udp")
	if ttl, ok := discover.LeastTTL(whole); !ok || ttl != 5*time.Second {
		f.Fatalf("got %s, %t", ttl, ok)
	}
	f.Add(whole)
	f.Add(whole[:len(whole)-1])
	f.Add(question)
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0xc0})
	f.Fuzz(func(t *testing.T, message []byte) {
		ttl, ok := discover.LeastTTL(message)
		if ttl < 0 || !ok && ttl != 0 || ok && message[6] == 0 && message[7] == 0 {
			t.Errorf("%x: got %s, %t", message, ttl, ok)
		}
	})
}
