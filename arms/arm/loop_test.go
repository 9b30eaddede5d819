package arm_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"runtime"
	"testing"
)

type loopReply struct {
	N                 float64
	NS, Bytes, Allocs float64
	Answers           []struct {
		Status int
		SHA256 string
		Length int
	}
}

func loop(t *testing.T, p *process, requests string) loopReply {
	t.Helper()
	replies, _ := p.ask(t, `{"do":"loop","for_ns":40000000,"requests":`+requests+`}`)
	data, err := json.Marshal(replies[0]["loop"])
	if err != nil {
		t.Fatal(err)
	}
	var r loopReply
	if err := json.Unmarshal(data, &r); err != nil || replies[0]["error"] != nil {
		t.Fatalf("loop %s: got %v", requests, replies[0])
	}
	return r
}

func TestLoopCostsNothingItself(t *testing.T) {
	for _, role := range []string{"handler", "loop"} {
		r := loop(t, start(t, role), `[{"target":"/noop","header":{"X-A":"1"},"body":"text"}]`)
		// Whatever the runtime allocates meanwhile is spread over very many requests.
		if r.Bytes > 0.5 || r.Allocs > 0.01 {
			t.Errorf("%s: a handler that does nothing: got %v B and %v allocations a request over %v requests, want none", role, r.Bytes, r.Allocs, r.N)
		}
		if r.NS <= 0 || r.N < 1 {
			t.Errorf("%s: got %v ns over %v requests, want both positive", role, r.NS, r.N)
		}
	}
}

// What a handler does not spend itself does not count.
func TestLoopLeavesOutWaiting(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the CPU time of the process is not known there")
	}
	r := loop(t, start(t, "handler"), `[{"target":"/sleep"}]`)
	if r.NS <= 0 || r.NS > 1e6 {
		t.Errorf("a handler that sleeps for 2 ms: got %v ns over %v requests, want its CPU time", r.NS, r.N)
	}
}

func TestLoopCountsAllocations(t *testing.T) {
	r := loop(t, start(t, "handler"), `[{"target":"/noop"},{"target":"/allocate"}]`)
	// Half of the requests allocate 4096 B; the routers around add some.
	if r.Bytes < 2048 || r.Bytes > 3000 || r.Allocs < 0.5 {
		t.Errorf("4096 B every other request: got %v B and %v allocations a request", r.Bytes, r.Allocs)
	}
}

func TestLoopAnswers(t *testing.T) {
	type answer struct {
		status int
		body   string
	}
	tests := []struct {
		role, requests string
		want           []answer
	}{
		{"handler", `[{"target":"/users/7"},{"target":"/nowhere"}]`, []answer{{200, "7"}, {404, "404 page not found\n"}}},
		{"handler", `[{"method":"POST","target":"/echo?a=b","header":{"x-colour":"red","host":"example"},"body":"text"}]`, []answer{{201, "example red 4 text"}}},
		{"loop", `[{"target":"/x"}]`, []answer{{201, "/x"}}},
	}
	for _, tt := range tests {
		r := loop(t, start(t, tt.role), tt.requests)
		if len(r.Answers) != len(tt.want) {
			t.Fatalf("%s: got %d answers, want %d", tt.requests, len(r.Answers), len(tt.want))
		}
		for i, want := range tt.want {
			sum := sha256.Sum256([]byte(want.body))
			if a := r.Answers[i]; a.Status != want.status || a.Length != len(want.body) || a.SHA256 != hex.EncodeToString(sum[:]) {
				t.Errorf("%s, request %d: got status %d and %d bytes %s, want %d and %q", tt.requests, i, a.Status, a.Length, a.SHA256, want.status, want.body)
			}
		}
	}
}
