package script

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tarehq/tare/internal/shape"
	"github.com/tarehq/tare/load"
)

// compiler checks what a file says as a whole and makes programs of its steps.
type compiler struct {
	*shape.Reader
	at    string // what the paths of the file begin with
	file  *File
	known map[string]bool // values that a step may have been given before

	program *Program
	used    map[string]bool // names of the program's requests
	loops   int             // around the step
	passes  int             // of these, multiplied
}

// User is the name of a value that all users know: their number, from 1.
const User = "user"

// mostPasses bounds the passes of loops within loops.
const mostPasses = 100_000

func (c *compiler) compile() {
	f := c.file
	c.users()
	c.session("fail_if", f.FailIf)
	for name, p := range f.Profiles {
		c.session("profiles."+name+".fail_if", p.FailIf)
	}
	c.known = map[string]bool{}
	f.setUp = c.make("", 0, "setup", f.Setup)
	base := maps.Clone(c.known)
	f.tearDown = c.make("", 0, "teardown", f.Teardown)
	base[User] = true
	f.user = c.slot(User)
	if f.feeder != nil {
		columns, _ := f.feeder.Table()
		for _, name := range columns {
			base[name] = true
			f.columns = append(f.columns, c.slot(name))
		}
	}
	for i, fl := range f.Flows {
		path := fmt.Sprintf("flows[%d]", i)
		if first := slices.IndexFunc(f.Flows, func(o Flow) bool { return o.Name == fl.Name }); first < i && fl.Name != "" {
			c.Wrong(path+".name", "flows[%d] is called %s already; names are unique", first, fl.Name)
		}
		c.known = maps.Clone(base)
		f.programs = append(f.programs, c.make(fl.Name, max(1, fl.Weight), path+".steps", fl.Steps))
		asks := slices.ContainsFunc(c.program.ops, func(o op) bool { return o.kind == opRequest })
		if !asks && len(fl.Steps) > 0 && !c.unread(path+".steps") {
			c.Wrong(path+".steps", "flow %s asks for nothing; give a step a url", fl.Name)
		}
	}
}

// users checks who comes.
func (c *compiler) users() {
	u := c.file.Users
	open, closed := c.has("users.arrive"), c.has("users.count")
	switch {
	case !c.has("users") || c.unread("users"):
	case open == closed:
		c.Wrong("users", "users say either arrive, such as 10/s (open loop), or count (closed loop)")
	case u.Most > 0 && closed:
		c.Wrong("users.most", "most is for users who arrive; leave it out")
	case u.Within > 0 && open:
		c.Wrong("users.within", "within is for users who are counted; leave it out")
	}
}

// session checks thresholds of sessions, which have no status.
func (c *compiler) session(path string, all []load.Threshold) {
	for i, t := range all {
		if strings.HasPrefix(t.String(), "status") {
			c.Wrong(fmt.Sprintf("%s[%d]", path, i), "%s: a session has no status; take p50 to p99.999, max, mean, errors or rate, or give it to a step", t)
		}
	}
}

func (c *compiler) has(path string) bool { _, ok := c.Stood[c.at+path]; return ok }

func (c *compiler) unread(path string) bool { return c.Unread[c.at+path] }

// Wrong notes a mistake in what stands at a path of the file.
func (c *compiler) Wrong(path, format string, args ...any) {
	c.Reader.Wrong(c.at+path, format, args...)
}

// slot is that of a name, a new one if it has none.
func (c *compiler) slot(name string) int {
	if i := slices.Index(c.file.names, name); i >= 0 {
		return i
	}
	c.file.names = append(c.file.names, name)
	return len(c.file.names) - 1
}

// make makes a program of steps.
func (c *compiler) make(name string, weight int, path string, steps []Step) *Program {
	c.program, c.used = &Program{name: name, Weight: weight}, map[string]bool{}
	c.loops, c.passes = 0, 1
	c.steps(path, steps)
	return c.program
}

func (c *compiler) steps(path string, all []Step) {
	for i := range all {
		c.step(fmt.Sprintf("%s[%d]", path, i), &all[i])
	}
}

// step appends what a step does.
func (c *compiler) step(path string, s *Step) {
	if c.unread(path) {
		return
	}
	c.kinds(path, s)
	switch {
	case s.URL != "":
		c.request(path, s)
	case s.When != nil:
		c.branch(path, s)
	case s.Repeat > 0:
		c.repeat(path, s)
	}
	if s.Think != (Think{}) {
		c.emit(op{kind: opThink, think: s.Think})
	}
}

// kinds checks that a step is of one kind, and says nothing of another.
func (c *compiler) kinds(path string, s *Step) {
	var kinds []string
	for _, k := range []string{"url", "when", "repeat"} {
		if c.has(path + "." + k) {
			kinds = append(kinds, k)
		}
	}
	if len(kinds) > 1 {
		c.Wrong(path, "the step says %s; it is one of them", strings.Join(kinds, " and "))
		return
	}
	kind := ""
	if len(kinds) == 1 {
		kind = kinds[0]
	}
	of := map[string]string{
		"name": "url", "method": "url", "header": "url", "body": "url", "check": "url", "take": "url", "go_on": "url", "fail_if": "url",
		"else": "when", "while": "repeat",
	}
	for _, k := range slices.Sorted(maps.Keys(of)) {
		if want := of[k]; want != kind && c.has(path+"."+k) {
			c.Wrong(path+"."+k, "%s does not belong here: it goes with %s", k, want)
		}
	}
	switch {
	case (kind == "when" || kind == "repeat") && !c.has(path+".steps"):
		c.Wrong(path, "%s lacks steps", kind)
	case kind != "when" && kind != "repeat" && c.has(path+".steps"):
		c.Wrong(path+".steps", "steps go with when or repeat")
	case kind == "" && !c.has(path+".think"):
		c.Wrong(path, "the step does nothing; give url, when, repeat or think")
	}
}

func (c *compiler) emit(o op) int {
	c.program.ops = append(c.program.ops, o)
	return len(c.program.ops) - 1
}

// here lets the jump at op i lead to what comes next.
func (c *compiler) here(i int) { c.program.ops[i].to = len(c.program.ops) }

func (c *compiler) branch(path string, s *Step) {
	unless := c.emit(op{kind: opUnless, cond: c.condition(path+".when", s.When)})
	c.steps(path+".steps", s.Steps)
	if len(s.Else) == 0 {
		c.here(unless)
		return
	}
	jump := c.emit(op{kind: opJump})
	c.here(unless)
	c.steps(path+".else", s.Else)
	c.here(jump)
}

func (c *compiler) repeat(path string, s *Step) {
	loop, passes := c.loops, c.passes
	if loop == deepest {
		c.Wrong(path+".repeat", "loops are %d deep at most", deepest)
		return
	}
	c.loops, c.passes = loop+1, passes*s.Repeat
	if c.passes > mostPasses {
		c.Wrong(path+".repeat", "loops within loops make %d passes; at most %d", c.passes, mostPasses)
	}
	c.knowTaken(s.Steps) // in the pass before
	c.emit(op{kind: opReset, loop: loop})
	top := c.emit(op{kind: opDone, loop: loop, times: s.Repeat})
	unless := -1
	if s.While != nil {
		unless = c.emit(op{kind: opUnless, cond: c.condition(path+".while", s.While)})
	}
	c.steps(path+".steps", s.Steps)
	c.emit(op{kind: opAgain, loop: loop, to: top})
	c.here(top)
	if unless >= 0 {
		c.here(unless)
	}
	c.loops, c.passes = loop, passes
}

// knowTaken adds what steps take.
func (c *compiler) knowTaken(steps []Step) {
	for _, s := range steps {
		for name := range s.Take {
			c.known[name] = true
		}
		c.knowTaken(s.Steps)
		c.knowTaken(s.Else)
	}
}

// look is the slot of a value that is used.
func (c *compiler) look(name string) (int, error) {
	if !c.known[name] {
		known := slices.Sorted(maps.Keys(c.known))
		return 0, fmt.Errorf("nothing before gives the value %s; %sthere are %s", name, shape.Meant(name, known), strings.Join(known, ", "))
	}
	return c.slot(name), nil
}

func (c *compiler) template(path, text string) template {
	t, err := parseTemplate(text, c.look)
	if err != nil {
		c.Wrong(path, "%s: %v", shape.Last(path), err)
	}
	return t
}

func (c *compiler) condition(path string, s *Condition) *condition {
	tests := 0
	for _, k := range []string{"is", "is_not", "matches", "above", "below", "set", "chance"} {
		if c.has(path + "." + k) {
			tests++
		}
	}
	if tests != 1 {
		c.Wrong(path, "the condition says one of is, is_not, matches, above, below, set, chance")
	}
	made := &condition{slot: -1, above: s.Above, below: s.Below, set: s.Set}
	switch {
	case s.Chance != nil:
		made.chance = *s.Chance
		if s.Value != "" {
			c.Wrong(path+".value", "a matter of chance looks at no value; leave it out")
		}
		return made
	case s.Value == "" && !c.unread(path+".value"):
		c.Wrong(path, "the condition lacks the key value: the name of what is compared")
		return made
	case s.Matches != "":
		made.re = regexp.MustCompile(s.Matches)
	case s.Is != nil:
		made.is = new(plain(s.Is))
	case s.IsNot != nil:
		made.isNot = new(plain(s.IsNot))
	}
	var err error
	if made.slot, err = c.look(s.Value); err != nil {
		c.Wrong(path+".value", "value: %v", err)
	}
	return made
}

// plain is a text, number or truth as text.
func plain(v any) string {
	if n, ok := v.(float64); ok {
		return strconv.FormatFloat(n, 'f', -1, 64)
	}
	return fmt.Sprint(v)
}

// request appends a step that is sent.
func (c *compiler) request(path string, s *Step) {
	method := s.Method
	if method == "" {
		method = "GET"
		if s.Body != "" {
			method = "POST"
		}
	}
	name := cmp.Or(s.Name, method+" "+s.URL)
	if c.used[name] {
		c.Wrong(path, "two steps of one list are called %q; give one another name", name)
	}
	c.used[name] = true
	url := s.URL
	if strings.HasPrefix(url, "/") {
		if c.file.Base == "" && !c.unread("base") {
			c.Wrong(path+".url", "the path has no host; give the file a base, such as http://localhost:8080, or write the whole URL")
		}
		url = c.file.Base + url
	}
	r := &Request{
		Step:   len(c.file.steps),
		method: method, url: c.template(path+".url", url), body: c.template(path+".body", s.Body), GoOn: s.GoOn,
	}
	c.file.steps = append(c.file.steps, Sent{Flow: c.program.name, Name: name, Named: s.Name != "", FailIf: s.FailIf, StatusAsked: len(s.Check.Status) > 0})
	r.header = append(c.header("header", c.file.Header), c.header(path+".header", s.Header)...)
	r.check = c.check(path+".check", &s.Check)
	for _, name := range slices.Sorted(maps.Keys(s.Take)) {
		r.takes = append(r.takes, c.source(path+".take."+name, name, s.Take[name]))
	}
	for _, t := range r.takes {
		r.NeedsBody = r.NeedsBody || t.json != nil || t.re != nil
	}
	k := r.check
	r.NeedsBody = r.NeedsBody || k.contains != "" || k.matches != nil || len(k.json) > 0
	c.emit(op{kind: opRequest, request: r})
}

func (c *compiler) header(path string, all map[string]string) (made []headerField) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		made = append(made, headerField{name, c.template(path+"."+name, all[name])})
	}
	return made
}

func (c *compiler) check(path string, k *Check) check {
	made := check{status: k.Status, contains: k.Contains, header: k.Header}
	if k.Matches != "" {
		made.matches = regexp.MustCompile(k.Matches)
	}
	for _, at := range slices.Sorted(maps.Keys(k.JSON)) {
		p, err := parsePath(at)
		if err != nil {
			c.Wrong(path+".json."+at, "%v", err)
		}
		made.json = append(made.json, jsonCheck{p, plain(k.JSON[at])})
	}
	return made
}

// source is a value to take, which is known from here on.
func (c *compiler) source(path, name string, s Source) take {
	said := 0
	for _, k := range []string{"json", "header", "cookie", "regexp"} {
		if c.has(path + "." + k) {
			said++
		}
	}
	switch {
	case said != 1 && !c.unread(path):
		c.Wrong(path, "value %s: say where it is: one of json, header, cookie, regexp", name)
	case name == User:
		c.Wrong(path, "the value %s is every user's number; take another name", User)
	}
	t := take{name: name, header: s.Header, cookie: s.Cookie, optional: s.Optional}
	if s.JSON != "" {
		var err error
		if t.json, err = parsePath(s.JSON); err != nil {
			c.Wrong(path+".json", "%v", err)
		}
	}
	if s.Regexp != "" {
		t.re = regexp.MustCompile(s.Regexp)
	}
	c.known[name] = true
	t.slot = c.slot(name)
	return t
}
