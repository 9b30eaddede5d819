package script

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"github.com/tarehq/tare/internal/shape"
	"github.com/tarehq/tare/load"
	"github.com/tarehq/tare/load/pace"
)

// File says what users do and how many come.
type File struct {
	Base      string            // scheme and host of paths; "" where every URL has its own
	Users     Users             // who come
	Duration  time.Duration     // of the measured part; 0 = that of the schedule, else 10 s
	WarmUp    time.Duration     // before the measured part; not counted
	Drain     time.Duration     // users are followed so long after the measured part; 0 = 30 s
	Timeout   time.Duration     // of one request, connecting included; 0 = 30 s
	Feed      string            // path of records, beside the file; each user takes the next
	Cookies   bool              // users keep cookies
	Redirects int               // followed in one step, at most; 0 = none
	Header    map[string]string // sent with every request; may hold fields
	Setup     []Step            // taken once, before the load; users know the values taken
	Teardown  []Step            // taken once, after it
	Flows     []Flow            // what users do, at least one
	FailIf    []load.Threshold  // of sessions; times are those that users waited for answers
	Profiles  map[string]Profile

	feeder          *load.Feeder
	names           []string // of values, by slot
	user            int      // slot
	columns         []int    // slots of the feeder's columns
	steps           []Sent
	programs        []*Program // of Flows
	setUp, tearDown *Program
}

// Users say who comes: by Arrive, or Count.
type Users struct {
	Arrive *pace.Schedule // sessions a second (open loop)
	Most   int            // at a time, further ones are dropped; 0 = 100,000
	Count  int            // users who begin again and again (closed loop)
	Within time.Duration  // the first beginnings of Count are spread over
}

// Loop is closed where users are counted; of those who arrive it is poisson or, at even times,
// constant.
func (u Users) Loop() string {
	switch {
	case u.Arrive == nil:
		return "closed"
	case u.Arrive.Random:
		return "poisson"
	}
	return "constant"
}

// Flow is what some of the users do.
type Flow struct {
	Name   string
	Weight int // share among the flows; 0 = 1
	Steps  []Step
}

// Step is one of: a request (URL), a condition (When, Steps, Else), a loop (Repeat, While,
// Steps), or think time alone.
type Step struct {
	Name   string // of a request, unique in its flow; "" = method and path
	Method string // "" = GET, or POST with a body
	URL    string // path, or whole; may hold fields such as {{.id}}
	Header map[string]string
	Body   string
	Check  Check
	Take   map[string]Source // values, by name
	GoOn   bool              // a failure does not end the flow
	FailIf []load.Threshold  // of this step
	Think  Think             // after the step

	When   *Condition
	Repeat int
	While  *Condition
	Steps  []Step
	Else   []Step
}

// Check says what an answer must be. The zero value: below 400.
type Check struct {
	Status   []int64           // one of these
	Contains string            // text of the body
	Matches  string            // regular expression that the body matches
	Header   map[string]string // fields with these values
	JSON     map[string]any    // values at these paths: text, number or truth
}

// Source says where a value is taken from: exactly one of the first four.
type Source struct {
	JSON     string // path, such as items[0].id
	Header   string // field's name
	Cookie   string // name, of the answer's or else of those kept
	Regexp   string // of the body: the first group, or the whole match
	Optional bool   // where it cannot be taken the value is unset, and the flow goes on
}

// Condition compares a value, or is a matter of chance: exactly one of the last six.
type Condition struct {
	Value                string // name; of all but Chance
	Is, IsNot            any    // text, number or truth; nil = not asked
	Matches              string // regular expression
	Above, Below, Chance *float64
	Set                  *bool // whether there is a value
}

// Sent is a step that sends a request.
type Sent struct {
	Flow, Name  string // Flow is "" in set-up and tear-down
	Named       bool   // the file names it; else by method and path
	FailIf      []load.Threshold
	StatusAsked bool // its check names the status that is right; else 4xx and 5xx are errors
}

// Sent are all steps that send requests, in the file's order.
func (f *File) Sent() []Sent { return f.steps }

// Programs are those of the flows, in the file's order.
func (f *File) Programs() []*Program { return f.programs }

// Around are the programs of set-up and tear-down; without steps where there is none.
func (f *File) Around() (setUp, tearDown *Program) { return f.setUp, f.tearDown }

// Know is what nobody knows yet: every value unset.
func (f *File) Know() Values { return make(Values, len(f.names)) }

// Begin sets what the n-th user, from 1, knows at the beginning: what the set-up took, the
// number and the next record.
func (f *File) Begin(n int, setUp, into Values) {
	copy(into, setUp)
	into[f.user] = value{strconv.Itoa(n), true}
	if f.feeder == nil {
		return
	}
	_, records := f.feeder.Table()
	for i, text := range records[(n-1)%len(records)] {
		into[f.columns[i]] = value{text, true}
	}
}

// ParseFile reads and checks a flow file. base, if not "", takes the place of the file's.
// The error is that of the file, of base, or [shape.Mistakes].
func ParseFile(path, base string) (*File, error) {
	data, err := shape.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading flows: %w", err)
	}
	return Parse(path, data, base)
}

// Parse reads and checks a flow file; name is what it is called in messages, and a feed's
// path is taken from its folder. base, if not "", takes the place of the file's. The error is
// that of base, or [shape.Mistakes]: everything that is wrong, at once.
func Parse(name string, data []byte, base string) (*File, error) {
	if base != "" && !regexp.MustCompile(baseURL).MatchString(base) {
		return nil, fmt.Errorf("base %q is not %s", base, wantBase)
	}
	r := shape.NewReader(name, "flow")
	var f File
	shape.Decode(r, data, fileShape(), &f)
	if base != "" {
		f.Base = base
	}
	if r.Nodes > 0 {
		f.Check(r, "", filepath.Dir(name))
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	return &f, nil
}

// Shape is a flow file's, for a file that holds one; its schema refers to [Definitions].
func Shape() shape.Of[File] { return fileShape() }

// Definitions are what the schema refers to.
func Definitions() map[string]shape.Schema {
	return map[string]shape.Schema{"condition": conditionShape().Schema(), "step": stepShape().Schema()}
}

// Check finishes a file that r has read at a path, "" or one that ends in a dot, and notes
// in r what is wrong. A feed's path is taken from dir.
func (f *File) Check(r *shape.Reader, at, dir string) {
	c := compiler{Reader: r, at: at, file: f}
	if f.Feed != "" {
		var err error
		if f.feeder, err = load.OpenFeeder(filepath.Join(dir, f.Feed)); err != nil {
			c.Wrong("feed", "%v", err)
		}
	}
	c.compile()
}

// Schema returns the JSON Schema (draft 2020-12) of flow files, for editors.
func Schema() ([]byte, error) {
	return fileShape().Encode("tare flow", Definitions())
}

// defaultDuration is how long a load lasts that nothing else ends.
const defaultDuration = 10 * time.Second

// Planned is the length of the measured part.
func (f *File) Planned() time.Duration {
	d := f.Duration
	if f.Users.Arrive != nil {
		if length, ends := f.Users.Arrive.Length(); ends && (d == 0 || length < d) {
			d = length
		}
	}
	if d == 0 {
		d = defaultDuration
	}
	return d
}
