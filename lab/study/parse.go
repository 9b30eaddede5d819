package study

import (
	"fmt"
	"path/filepath"

	"github.com/tarehq/tare/internal/shape"
	"github.com/tarehq/tare/load/flow/script"
)

// ParseFile reads and checks a study file. Its error is that of the file, or
// [shape.Mistakes]. Devices and pipes, which may have no end or never begin, are refused
// unopened: a run is repeated from its file.
func ParseFile(path string) (*Study, error) {
	data, err := shape.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading study: %w", err)
	}
	s, err := Parse(path, data)
	if err != nil {
		return nil, err
	}
	s.File = path
	return s, nil
}

// topic is the topic of help on study files.
const topic = "study-files"

// Parse reads and checks a study; name is what the file is called in
// messages. The error is [shape.Mistakes]: everything that is wrong, at once.
func Parse(name string, data []byte) (*Study, error) {
	r := shape.NewReader(name, topic)
	var s Study
	shape.Decode(r, data, studyShape(), &s)
	if r.Nodes > 0 {
		s.complete()
		check(r, &s, filepath.Dir(name))
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	return &s, nil
}

// complete writes out what is understood where nothing is said.
func (s *Study) complete() {
	for _, c := range s.Claims {
		for i := range c.Checks {
			c.Checks[i].complete()
		}
	}
}

func (k *Check) complete() {
	if k.Kind == "" {
		k.Kind = Effect
	}
	if k.PublishedDifference != nil && k.Direction == "" {
		k.Direction = "more" // a difference is written without a sign
	}
	switch r := k.PublishedRatio; {
	case r == nil || k.Direction != "" || *r == 1:
	case *r > 1:
		k.Direction = "more"
	default:
		k.Direction = "less"
	}
}

// Schema returns the JSON Schema (draft 2020-12) of study files, for editors. What refers from
// one part of a file to another, such as a control that is no arm, only Parse finds.
func Schema() ([]byte, error) {
	defs := script.Definitions()
	defs["arm"], defs["metric"] = armRules(), metricName().Schema()
	return studyShape().Encode("tare study", defs)
}
