package telemetry_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/telemetry"
)

// unpack reads a block of snappy's, as its description has it.
func unpack(block []byte) ([]byte, error) {
	length, n := binary.Uvarint(block)
	if n <= 0 {
		return nil, errors.New("no length")
	}
	var out []byte
	for in := block[n:]; len(in) > 0; {
		tag, size := in[0], 0
		in = in[1:]
		switch tag & 3 {
		case 0:
			size = int(tag>>2) + 1
			if more := size - 60; more > 0 {
				if len(in) < more {
					return nil, errors.New("cut off")
				}
				size = 1
				for k := range more {
					size += int(in[k]) << (8 * k)
				}
				in = in[more:]
			}
			if len(in) < size {
				return nil, errors.New("cut off")
			}
			out, in = append(out, in[:size]...), in[size:]
		case 2:
			if len(in) < 2 {
				return nil, errors.New("cut off")
			}
			back := int(binary.LittleEndian.Uint16(in))
			if in = in[2:]; back == 0 || back > len(out) {
				return nil, fmt.Errorf("a copy from %d bytes before, of %d", back, len(out))
			}
			for range int(tag>>2) + 1 {
				out = append(out, out[len(out)-back])
			}
		default:
			return nil, fmt.Errorf("tag %#x", tag)
		}
	}
	if uint64(len(out)) != length {
		return nil, fmt.Errorf("%d bytes, announced are %d", len(out), length)
	}
	return out, nil
}

// FuzzPack packs bytes and unpacks them.
func FuzzPack(f *testing.F) {
	f.Add([]byte(nil), 1)
	f.Add([]byte("abc"), 1)
	f.Add([]byte("xababababababababababababababababababababababababababababababababababababab"), 3)
	f.Add([]byte("tare_owner_cpu_seconds_total"), 5000) // beyond 64 KiB
	f.Add(bytes.Repeat([]byte{0, 1, 2, 3, 4, 5, 6, 7, 9}, 20), 900)
	f.Fuzz(func(t *testing.T, part []byte, times int) {
		if times < 0 || len(part)*(times%10_000) > 1<<20 {
			return
		}
		in := bytes.Repeat(part, times%10_000)
		for k := 0; k < len(in); k += 100 {
			in[k] ^= byte(k >> 8)
		}
		out, err := unpack(telemetry.Pack(in))
		if err != nil || !bytes.Equal(in, out) {
			t.Fatalf("%d bytes became %d: %v", len(in), len(out), err)
		}
	})
}

// sent is a sample that a receiver was sent.
type sent struct {
	value float64
	at    int64
}

// fields calls f with the fields of a message.
func fields(b []byte, f func(number byte, value uint64, bytes []byte) error) error {
	for len(b) > 0 {
		tag := b[0]
		var value uint64
		n := 8
		b = b[1:]
		var part []byte
		switch tag & 7 {
		case 0:
			if value, n = binary.Uvarint(b); n <= 0 {
				return errors.New("no number")
			}
		case 1:
			if len(b) < 8 {
				return errors.New("cut off")
			}
			value = binary.LittleEndian.Uint64(b)
		case 2:
			size, k := binary.Uvarint(b)
			if k <= 0 || size > uint64(len(b)-k) {
				return errors.New("cut off")
			}
			part, n = b[k:][:size], k+int(size)
		default:
			return fmt.Errorf("tag %#x", tag)
		}
		b = b[n:]
		if err := f(tag>>3, value, part); err != nil {
			return err
		}
	}
	return nil
}

// receiver is a strict receiver of remote write: what the specification forbids is an error.
type receiver struct {
	mu       sync.Mutex
	gate     chan struct{} // nil: open; else requests wait until it is closed
	answers  []int         // of the next requests; then 204
	requests int
	got      map[string][]sent // by labels
	wrong    []error
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	r.mu.Lock()
	gate := r.gate
	r.mu.Unlock()
	if gate != nil {
		<-gate
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests++
	for name, want := range map[string]string{
		"Content-Encoding": "snappy", "Content-Type": "application/x-protobuf", "X-Prometheus-Remote-Write-Version": "0.1.0", "User-Agent": "tare",
	} {
		if got := req.Header.Values(name); len(got) != 1 || got[0] != want {
			r.wrong = append(r.wrong, fmt.Errorf("%s: %q, want %q", name, got, want))
		}
	}
	if req.Method != http.MethodPost || req.URL.Path != "/api/v1/write" {
		r.wrong = append(r.wrong, fmt.Errorf("%s %s", req.Method, req.URL.Path))
	}
	if len(r.answers) > 0 {
		status := r.answers[0]
		r.answers = r.answers[1:]
		if status/100 != 2 {
			http.Error(w, "not now", status)
			return
		}
	}
	message, err2 := unpack(body)
	err = errors.Join(err, err2, fields(message, func(number byte, _ uint64, one []byte) error {
		if number != 1 {
			return fmt.Errorf("field %d of a request", number)
		}
		return r.add(one)
	}))
	if err != nil {
		r.wrong = append(r.wrong, err)
	}
	w.WriteHeader(http.StatusNoContent)
}

// add takes a series.
func (r *receiver) add(message []byte) error {
	labels, last := "", ""
	var s sent
	samples := 0
	err := fields(message, func(number byte, _ uint64, part []byte) error {
		if number == 2 {
			samples++
			return fields(part, func(number byte, value uint64, _ []byte) error {
				if number == 1 {
					s.value = math.Float64frombits(value)
				} else {
					s.at = int64(value)
				}
				return nil
			})
		}
		var label [2]string
		err := fields(part, func(number byte, _ uint64, text []byte) error {
			label[number-1] = string(text)
			return nil
		})
		if label[0] <= last || label[1] == "" {
			return fmt.Errorf("label %q after %q", label, last)
		}
		last = label[0]
		labels += label[0] + "=" + label[1] + ","
		return err
	})
	if before := r.got[labels]; len(before) > 0 && before[len(before)-1].at >= s.at {
		err = errors.Join(err, fmt.Errorf("%s: a sample of %d after one of %d", labels, s.at, before[len(before)-1].at))
	}
	if samples != 1 {
		err = errors.Join(err, fmt.Errorf("%s: %d samples", labels, samples))
	}
	if r.got == nil {
		r.got = map[string][]sent{}
	}
	r.got[labels] = append(r.got[labels], s)
	return err
}

// await waits until something holds of the receiver.
func (r *receiver) await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		r.mu.Lock()
		ok := holds()
		r.mu.Unlock()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("waiting for %s", what)
		}
	}
}

// figures are those of a moment: a counter, and a gauge unless it is gone.
func figures(at time.Time, count float64, gauge bool) *telemetry.Figures {
	f := &telemetry.Figures{At: at, Since: at, Families: []telemetry.Family{
		{Name: "requests", Kind: telemetry.Counter, Unit: "{request}", Points: []telemetry.Point{{Labels: []telemetry.Label{{"service", "shop"}, {"empty", ""}}, Value: count}}},
		{Name: "answer", Kind: telemetry.Histogram, Unit: "s", Points: []telemetry.Point{{Times: &telemetry.Times{Count: 4, Sum: 1.5, Buckets: []telemetry.Bucket{{Most: 0.5, Count: 4}}}}}},
	}}
	if gauge {
		f.Families = append(f.Families, telemetry.Family{Name: "watch.rate", Kind: telemetry.Gauge, Points: []telemetry.Point{{Value: 19}}})
	}
	return f
}

// series is the name of one that a receiver got.
func series(name string, more ...string) string {
	host, _ := os.Hostname()
	all := "__name__=" + name + ","
	inserted := false
	for _, label := range append(more, "") {
		if (label == "" || label > "instance") && !inserted {
			all += "instance=" + host + ",job=tare,"
			inserted = true
		}
		if label != "" {
			all += label + ","
		}
	}
	return all
}

// TestRemoteWrite has a receiver be away, busy, and refuse: what it takes is in order, with
// nothing left out but what it refused, and a marker where a series ends.
func TestRemoteWrite(t *testing.T) {
	r := &receiver{answers: []int{204, 503, 429, 204, 400}}
	server := httptest.NewServer(r)
	defer server.Close()
	e, err := telemetry.Open(t.Context(), telemetry.Options{Write: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	for k, gauge := range []bool{true, true, false} {
		e.Note(figures(begun.Add(time.Duration(k)*10*time.Second), float64(k), gauge))
	}
	e.Note(figures(begun, 9, false)) // of the past
	r.await(t, "all requests", func() bool { return r.requests == 6 })
	for tries := 0; ; tries++ { // the last answer is on its way
		lost, why := e.Unwritten()
		if lost == 2 && strings.Contains(why.Error(), "400 Bad Request") || lost == 1 && strings.Contains(why.Error(), "400") {
			break
		}
		if tries > 1000 {
			t.Fatalf("%d lost, %v, want two, the last by the receiver's answer", lost, why)
		}
		time.Sleep(5 * time.Millisecond)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, err := range r.wrong {
		t.Error(err)
	}
	counts := r.got[series("tare_requests_total", "service=shop")]
	if len(counts) != 3 || counts[0] != (sent{0, begun.UnixMilli()}) || counts[1] != (sent{2, begun.Add(20 * time.Second).UnixMilli()}) || !math.IsNaN(counts[2].value) {
		t.Errorf("got %v, want the first and the third, and the end", counts)
	}
	rate := r.got[series("tare_watch_rate")]
	if len(rate) != 2 || rate[0].value != 19 || math.Float64bits(rate[1].value) != 0x7ff0000000000002 || rate[1].at != begun.Add(20*time.Second).UnixMilli() {
		t.Errorf("got %v, want a reading, and that there are no more", rate)
	}
	if b := r.got[series("tare_answer_seconds_bucket", "le=+Inf")]; len(b) == 0 || b[0].value != 4 {
		t.Errorf("got %v in the last bucket, want all", b)
	}
}

// TestRemoteWriteBounded has a receiver be away for long, with much to send: what waits is
// bounded, and the latest arrives.
func TestRemoteWriteBounded(t *testing.T) {
	r := new(receiver)
	server := httptest.NewServer(r)
	defer server.Close()
	e, err := telemetry.Open(t.Context(), telemetry.Options{Write: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	gate := make(chan struct{})
	r.mu.Lock()
	r.gate = gate
	r.mu.Unlock()
	begun := time.Now()
	const sets, owners = 30, 5000
	for k := range sets {
		f := figures(begun.Add(time.Duration(k)*time.Second), float64(k), true)
		p := make([]telemetry.Point, owners)
		for n := range p {
			p[n] = telemetry.Point{Labels: []telemetry.Label{{"owner", fmt.Sprintf("%x%x%x", rand.Uint64(), rand.Uint64(), rand.Uint64())}}, Value: math.Sqrt(float64(n * (k + 1)))}
		}
		f.Families = append(f.Families, telemetry.Family{Name: "owner.cpu", Kind: telemetry.Counter, Unit: "s", Points: p})
		e.Note(f)
		if waiting := telemetry.Waiting(e); waiting > 9<<20 {
			t.Fatalf("%d bytes wait", waiting)
		}
	}
	lost, why := e.Unwritten()
	if lost == 0 || why == nil {
		t.Errorf("%d lost, %v: want some", lost, why)
	}
	close(gate)
	for deadline := time.Now().Add(time.Minute); telemetry.Waiting(e) > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d bytes still wait", telemetry.Waiting(e))
		}
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, err := range r.wrong {
		t.Error(err)
	}
	counts := r.got[series("tare_requests_total", "service=shop")]
	if n := len(counts); n < 2 || counts[n-2].value != sets-1 {
		t.Errorf("got %v, want the latest and the end", counts)
	}
}

// TestRemoteWriteEnds has a receiver ask for a minute's rest: at the end, what waits is sent
// all the same.
func TestRemoteWriteEnds(t *testing.T) {
	var calls atomic.Int64
	busy := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1) == 2 {
			w.Header().Set("Retry-After", "60")
			w.WriteHeader(http.StatusServiceUnavailable)
			close(busy)
		}
	}))
	defer server.Close()
	e, err := telemetry.Open(t.Context(), telemetry.Options{Write: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	e.Note(figures(time.Now(), 1, true))
	<-busy
	if err := e.Close(); err != nil || calls.Load() < 4 {
		t.Errorf("got %v after %d requests, want the figures and their end sent", err, calls.Load())
	}
}

// TestRemoteWriteRefused tells at once of a receiver that takes none, and goes on if it is
// only away.
func TestRemoteWriteRefused(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	if _, err := telemetry.Open(t.Context(), telemetry.Options{Write: server.URL}); !errors.As(err, new(*telemetry.ReceiverError)) {
		t.Errorf("got %v, want that it is no receiver", err)
	}
	server.Close()
	e, err := telemetry.Open(t.Context(), telemetry.Options{Write: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	if lost, why := e.Unwritten(); lost != 0 || why == nil {
		t.Errorf("%d lost, %v: want none, and what went wrong", lost, why)
	}
	e.Note(figures(time.Now(), 1, true))
	telemetry.GiveUp(e)
	if err := e.Close(); err == nil || !strings.Contains(err.Error(), "lost") {
		t.Errorf("got %v, want what was lost", err)
	}
	if _, err := telemetry.Open(t.Context(), telemetry.Options{Write: "ftp://x"}); !errors.As(err, new(*telemetry.URLError)) {
		t.Errorf("got %v, want that it is no URL", err)
	}
}

// TestPrometheus writes to Prometheus itself and asks it.
func TestPrometheus(t *testing.T) {
	program, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skipf("SKIPPED: remote write to Prometheus: %v (Debian package prometheus)", err)
	}
	base := startPrometheus(t, program)
	e, err := telemetry.Open(t.Context(), telemetry.Options{Write: base})
	if err != nil {
		t.Fatal(err)
	}
	const sets = 5
	begun := time.Now().Add(-sets * time.Second)
	for k := range sets {
		e.Note(figures(begun.Add(time.Duration(k)*time.Second), float64(100+k), k < 3))
	}
	ask := func(query string) string {
		res, err := http.Get(base + "/api/v1/query?query=" + url.QueryEscape(query))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		var answer struct {
			Data struct {
				Result []struct {
					Value [2]any `json:"value"`
				} `json:"result"`
			} `json:"data"`
		}
		if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
			t.Fatal(err)
		}
		if len(answer.Data.Result) != 1 {
			return fmt.Sprint(len(answer.Data.Result), " series")
		}
		return answer.Data.Result[0].Value[1].(string)
	}
	until := func(query, want string) {
		t.Helper()
		got := ""
		for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
			if got = ask(query); got == want {
				return
			}
		}
		t.Errorf("%s: got %s, want %s", query, got, want)
	}
	until(`tare_requests_total{service="shop",job="tare"}`, "104")
	until(`count_over_time(tare_requests_total[1m])`, "5")
	until(`tare_watch_rate`, "0 series") // it ended
	until(`count_over_time(tare_watch_rate[1m])`, "3")
	until(`histogram_quantile(0.5, tare_answer_seconds_bucket)`, "0.25")
	if lost, why := e.Unwritten(); lost > 0 || why != nil {
		t.Errorf("%d lost: %v", lost, why)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	until(`tare_requests_total`, "0 series")
}

// startPrometheus starts one that takes remote write, and returns its URL.
func startPrometheus(t *testing.T, program string) string {
	t.Helper()
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(config, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	cmd := exec.Command(program, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+addr, "--web.enable-remote-write-receiver")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		cmd.Process.Kill()
		<-ended
	})
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		res, err := http.Get("http://" + addr + "/-/ready")
		if err == nil {
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return "http://" + addr
			}
		}
		if time.Now().After(deadline) {
			t.Fatal("Prometheus is not ready after a minute")
		}
	}
}
