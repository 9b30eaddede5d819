package study

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/tarehq/tare/internal/shape"
	"github.com/tarehq/tare/load/flow/script"
)

// Flow is what the users of a workload do. Its steps of one name are an operation, of which
// there are metrics.
type Flow struct {
	File       string          `json:"file,omitzero"`       // beside the study's, that it was read from; "" = it stands in the study
	Operations []string        `json:"operations,omitzero"` // names, in the order in which they are first taken
	Says       json.RawMessage `json:"says,omitzero"`       // the whole of it, as package script reads it

	written shape.Included[script.File] // until it is checked
}

// armURL stands for an arm's where flows are read and nothing is sent.
const armURL = "http://127.0.0.1"

// flow reads the flow of a workload, and fills in what follows from it.
func (c *checker) flow(i int) {
	w, at := &c.Workloads[i], c.path(i)
	if w.Flow == nil {
		if !c.has(at + ".schedule") {
			c.Wrong(at, "the workload lacks the key schedule: %s", scheduleDoc)
		}
		c.forbid(at, "profile", "a profile changes who takes a flow; give the workload a flow")
		return
	}
	for _, key := range []string{"schedule", "rate", "connections", "fresh", "timeout", "pipeline"} {
		c.forbid(at, key, "the flow says who comes, and how requests are sent")
	}
	f, tree := c.readFlow(w.Flow, at+".flow")
	if f == nil {
		return
	}
	w.Flow.Says, _ = json.Marshal(tree) // what YAML says has a form
	if _, err := f.As(w.Profile, 0); err != nil && w.Profile != "" {
		c.Wrong(at+".profile", "%v", err)
	}
	w.Schedule = f.Users.Loop()
	for _, s := range f.Sent() {
		if s.Flow != "" && s.Named && !slices.Contains(w.Flow.Operations, s.Name) {
			w.Flow.Operations = append(w.Flow.Operations, s.Name)
		}
	}
}

// readFlow reads what was written at a path, or in a file; nil where it cannot be.
func (c *checker) readFlow(fl *Flow, at string) (*script.File, any) {
	in := fl.written
	fl.written, fl.File = shape.Included[script.File]{}, in.File
	switch {
	case c.Unread[at]:
		return nil, nil
	case in.File != "":
		return c.readFile(at, filepath.Join(c.dir, in.File))
	}
	for _, key := range []string{"base", "duration", "warm_up", "fail_if"} {
		c.forbid(at, key, "an arm's URL, the study's trial and its checks stand for it")
	}
	in.Value.Base = armURL
	in.Value.Check(c.Reader, at+".", c.dir)
	return &in.Value, in.Tree
}

func (c *checker) readFile(at, path string) (f *script.File, tree any) {
	data, err := shape.ReadFile(path)
	if err == nil {
		f, err = script.Parse(path, data, armURL)
	}
	if err != nil {
		c.Misread(at, "flow: %v", err)
		return nil, nil
	}
	shape.Decode(shape.NewReader(path, "flow"), data, shape.Tree(), &tree)
	return f, tree
}

// explainOperation says why a metric is of no operation that a workload has; "" where it is, or
// is of all requests.
func (w Workload) explainOperation(metric string) string {
	op, plain := cutOperation(metric)
	switch {
	case op == "" && plain == "relative_mean":
		return "relative_mean is of one operation; write OPERATION/relative_mean"
	case op != "" && (w.Flow == nil || !slices.Contains(w.Flow.Operations, op)):
		return fmt.Sprintf("%s is of the operation %s, which is no step's name in a flow of workload %q", metric, op, w.Name)
	}
	return ""
}
