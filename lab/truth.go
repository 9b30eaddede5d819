package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/tarehq/tare/lab/answer"
	"github.com/tarehq/tare/lab/record"
)

// truth is what an arm says that its parts have cost since it began, as
// docs/arm.md describes it.
type truth struct {
	parts map[string]account
	err   error
}

// account is what one part says of itself, of all its calls.
type account struct {
	Calls    float64 `json:"calls"`
	Wall     float64 `json:"ns"`
	CPU      float64 `json:"cpu_ns"`    // reckoned from CPUCalls of the calls
	CPUCalls float64 `json:"cpu_calls"` // whose CPU time was taken; 0: of all, if CPU is there
	Bytes    float64 `json:"bytes"`
	Wait     float64 `json:"wait_ns"`
}

// maxTruth bounds what is read of an arm's account.
const maxTruth = 1 << 20

// readTruth asks the arm, if the study says where.
func (s *session) readTruth(ctx context.Context) truth {
	path := s.r.Study.Attribute.Truth.Path
	if path == "" {
		return truth{}
	}
	t, err := askTruth(ctx, s.proc.URL()+path)
	if err != nil {
		err = fmt.Errorf("asking the arm for %s: %w", path, err)
	}
	return truth{t, err}
}

func askTruth(ctx context.Context, url string) (map[string]account, error) {
	ctx, cancel := context.WithTimeout(ctx, answer.Within)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	res, err := transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("it answered %s", res.Status)
	}
	var parts map[string]account
	if err := json.NewDecoder(io.LimitReader(res.Body, maxTruth)).Decode(&parts); err != nil {
		return nil, err
	}
	return parts, nil
}

// since is what the parts cost a request between two accounts. Parts that were
// not called are left out.
func (t truth) since(before truth, requests float64) map[string]record.Truth {
	all := map[string]record.Truth{}
	for name, a := range t.parts {
		b := before.parts[name]
		calls := a.Calls - b.Calls
		if calls <= 0 {
			continue
		}
		out := record.Truth{Calls: calls / requests, Bytes: (a.Bytes - b.Bytes) / requests}
		cpu, known := a.cpuSince(b)
		out.CPU = cpu * out.Calls
		switch {
		case a.Wait > 0:
			out.Waiting = (a.Wait - b.Wait) / requests
		case !known: // it does nothing but wait
			out.Waiting = (a.Wall - b.Wall) / requests
		}
		all[name] = out
	}
	return all
}

// cpuSince is the mean CPU time of the calls that were taken since b.
func (a account) cpuSince(b account) (mean float64, known bool) {
	if a.CPU == 0 {
		return 0, false
	}
	if a.CPUCalls == 0 {
		return (a.CPU - b.CPU) / (a.Calls - b.Calls), true
	}
	taken := a.CPUCalls - b.CPUCalls
	if taken <= 0 {
		return a.CPU / a.Calls, true
	}
	return (a.taken() - b.taken()) / taken, true
}

// taken is the CPU time of the calls of which it was taken.
func (a account) taken() float64 {
	if a.Calls == 0 {
		return 0
	}
	return a.CPU / a.Calls * a.CPUCalls
}
