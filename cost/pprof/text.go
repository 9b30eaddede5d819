package pprof

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/tarehq/tare/cost"
)

// Memory is what the runtime says of its heap: the part of runtime.MemStats that
// the heap profile's text form ends with. Sizes are in bytes.
type Memory struct {
	Cycles    float64 // collections since the program began
	Forced    float64 // of these, asked for by runtime.GC
	Allocated float64 // since the program began
	NextGC    float64 // size at which the next collection begins

	Pauses []time.Duration // of the latest 256 collections at most, in no order
}

// Memory asks for the state of the heap. The service stops for it, for some tens
// of microseconds.
func (s *Service) Memory(ctx context.Context) (*Memory, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	text, err := s.ask(ctx, "heap", url.Values{"debug": {"1"}})
	if err != nil {
		return nil, err
	}
	m, err := readMemory(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.at("heap"), err)
	}
	return m, nil
}

// readMemory reads the lines "# Name = value" below "# runtime.MemStats".
func readMemory(text []byte) (*Memory, error) {
	_, stats, found := bytes.Cut(text, []byte("\n# runtime.MemStats\n"))
	if !found {
		return nil, errors.New("no runtime.MemStats at its end")
	}
	var m Memory
	fields := map[string]*float64{"NumGC": &m.Cycles, "NumForcedGC": &m.Forced, "TotalAlloc": &m.Allocated, "NextGC": &m.NextGC}
	seen := 0
	for line := range strings.Lines(string(stats)) {
		name, value, ok := strings.Cut(strings.TrimPrefix(line, "# "), " = ")
		if name == "PauseNs" {
			m.Pauses = readPauses(value)
		}
		at := fields[name]
		if !ok || at == nil {
			continue
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if err != nil {
			return nil, fmt.Errorf("%s is %q: no number", name, strings.TrimSpace(value))
		}
		*at = v
		seen++
	}
	if m.Cycles == 0 && m.Allocated == 0 || seen < 3 {
		return nil, errors.New("its runtime.MemStats are of a form that is not known")
	}
	return &m, nil
}

// readPauses reads nanoseconds as "[1 2 3]"; zeros stand for collections that
// have not been.
func readPauses(text string) []time.Duration {
	var all []time.Duration
	for field := range strings.FieldsSeq(strings.Trim(text, "[] \r\n")) {
		if ns, err := strconv.ParseInt(field, 10, 64); err == nil && ns > 0 {
			all = append(all, time.Duration(ns))
		}
	}
	return all
}

// Births says where goroutines were started: from the function with which a
// goroutine begins to the line of its go statement.
type Births map[string]cost.Frame

// Births asks for every goroutine's traceback. The service stops while it writes
// them: about 10 µs for each goroutine.
func (s *Service) Births(ctx context.Context) (Births, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	text, err := s.ask(ctx, "goroutine", url.Values{"debug": {"2"}})
	if err != nil {
		return nil, err
	}
	return readBirths(text), nil
}

// readBirths reads tracebacks: of each goroutine a heading, two lines a frame,
// innermost first, and last two lines on who created it.
func readBirths(text []byte) Births {
	births := Births{}
	var first, creator string
	in := bufio.NewScanner(bytes.NewReader(text))
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		line := in.Text()
		switch by, created := strings.CutPrefix(line, "created by "); {
		case line == "":
			first, creator = "", ""
		case created:
			creator, _, _ = strings.Cut(by, " in goroutine ")
		case strings.HasPrefix(line, "\t"):
			if creator != "" && first != "" {
				births[first] = position(creator, line)
			}
		default:
			first = line
			if open := strings.LastIndexByte(line, '('); open > 0 {
				first = line[:open]
			}
		}
	}
	return births
}

// position reads "\t/dir/file.go:12 +0x34".
func position(fn, line string) cost.Frame {
	at, _, _ := strings.Cut(strings.TrimPrefix(line, "\t"), " ")
	f := cost.Frame{Func: fn, File: at}
	if colon := strings.LastIndexByte(at, ':'); colon > 0 {
		if n, err := strconv.Atoi(at[colon+1:]); err == nil {
			f.File, f.Line = at[:colon], n
		}
	}
	return f
}
