package exectrace

import (
	"errors"
	"fmt"
	"io"

	"golang.org/x/exp/trace"
)

// scan hands a trace's events to take. A trace that cannot be read at all is an
// error; one that breaks off after its first events is not, and cut says why.
func scan(r io.Reader, take func(trace.Event)) (cut, err error) {
	seen := 0
	defer func() {
		// The reader checks what it reads, but not everything: what a damaged
		// trace makes it do is this trace's fault.
		if v := recover(); v != nil {
			cut, err = verdict(seen, fmt.Errorf("damaged: %v", v))
		}
	}()
	in, err := trace.NewReader(r)
	if err != nil {
		return nil, fmt.Errorf("reading a trace: %w", err)
	}
	for {
		ev, err := in.ReadEvent()
		if errors.Is(err, io.EOF) && seen > 0 {
			return nil, nil
		}
		if err != nil {
			return verdict(seen, err)
		}
		if ev.Kind() != trace.EventSync {
			seen++
		}
		take(ev)
	}
}

// verdict says what an error means after so many events.
func verdict(seen int, err error) (cut, fatal error) {
	if seen == 0 && errors.Is(err, io.EOF) {
		err = errors.New("there is nothing in it")
	}
	if seen == 0 {
		return nil, fmt.Errorf("reading a trace: %w", err)
	}
	return fmt.Errorf("the trace breaks off: %w", err), nil
}
