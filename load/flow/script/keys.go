package script

import (
	"regexp"
	"time"

	"github.com/tarehq/tare/internal/shape"
	"github.com/tarehq/tare/load"
	"github.com/tarehq/tare/load/pace"
)

// The table of everything that a flow file can say. Parse reads by it, Schema is made from
// it, and a test holds the page of flow files against it.

const (
	partName   = `^[A-Za-z0-9][A-Za-z0-9._+@-]{0,62}$`
	wantPart   = "letters, digits and . _ + @ -, at most 63, the first a letter or digit"
	valueName  = `^[A-Za-z_][A-Za-z0-9_]{0,62}$`
	wantValue  = "letters, digits and _, the first no digit, at most 63"
	baseURL    = `^https?://[^\s/?#@\x00-\x1f\x7f]+$`
	wantBase   = "http:// or https://, host and port, no path, such as http://localhost:8080"
	stepURL    = `^(/|https?://)[^\s#\x00-\x1f\x7f]*$`
	methodName = `^[A-Z]+$`
	fieldName  = `^[A-Za-z0-9_-]+$`
	fieldValue = `^[^\x00-\x08\x0a-\x1f\x7f]+$`
	longest    = 48 * time.Hour
	deepest    = 8 // loops within loops
)

func fileShape() shape.Of[File] {
	steps := steps()
	return shape.Object("the file", []shape.Key[File]{
		shape.Field("base", "Scheme and host that paths belong to.", shape.Matching(baseURL, wantBase), func(f *File) *string { return &f.Base }),
		shape.Field("users", "Who come: arrive, or count.", usersShape(), func(f *File) *Users { return &f.Users }).Must(),
		shape.Field("duration", "Length of the measured part.", length(), func(f *File) *time.Duration { return &f.Duration }),
		shape.Field("warm_up", "The part before the measured one; it is not counted.", length(), func(f *File) *time.Duration { return &f.WarmUp }),
		shape.Field("drain", "How long users are followed after the measured part (30s).", length(), func(f *File) *time.Duration { return &f.Drain }),
		shape.Field("timeout", "Limit of one request, connecting included (30s).", length(), func(f *File) *time.Duration { return &f.Timeout }),
		shape.Field("feed", "A .csv or .jsonl file beside this one; each user takes the next record.", shape.Argument(), func(f *File) *string { return &f.Feed }),
		shape.Field("cookies", "Whether users keep cookies.", shape.Boolean(), func(f *File) *bool { return &f.Cookies }),
		shape.Field("redirects", "Redirects that a step follows, at most; none by default.", shape.Integer(1, 20), func(f *File) *int { return &f.Redirects }),
		shape.Field("header", "Header fields of every request.", fields(), func(f *File) *map[string]string { return &f.Header }),
		shape.Field("setup", "Steps taken once before the load. Users know the values taken.", steps, func(f *File) *[]Step { return &f.Setup }),
		shape.Field("teardown", "Steps taken once after the load.", steps, func(f *File) *[]Step { return &f.Teardown }),
		shape.Field("flows", "What users do.", shape.List(flowShape(steps), 1), func(f *File) *[]Flow { return &f.Flows }).Must(),
		shape.Field("fail_if", "What must not be so of sessions; their times are what users waited for answers.", thresholds(), func(f *File) *[]load.Threshold { return &f.FailIf }),
		shape.Field("profiles", "Changes to the profiles, by name.", shape.Dict(`^(smoke|pressure|stress|spike|soak|breakpoint)$`, "smoke, pressure, stress, spike, soak or breakpoint", profileShape()), func(f *File) *map[string]Profile { return &f.Profiles }),
	})
}

func usersShape() shape.Of[Users] {
	return shape.Object("users", []shape.Key[Users]{
		shape.Field("arrive", "Open loop: sessions that begin each second, "+pace.Forms+".", arrivals(), func(u *Users) **pace.Schedule { return &u.Arrive }),
		shape.Field("most", "Open loop: users at a time; further ones are dropped and counted (100000).", shape.Integer(1, 10_000_000), func(u *Users) *int { return &u.Most }),
		shape.Field("count", "Closed loop: users, each of whom begins again when done.", shape.Integer(1, 1_000_000), func(u *Users) *int { return &u.Count }),
		shape.Field("within", "Closed loop: the time over which they begin.", length(), func(u *Users) *time.Duration { return &u.Within }),
	}, shape.ExactlyOne("arrive", "count"))
}

func profileShape() shape.Of[Profile] {
	return shape.Object("the profile", []shape.Key[Profile]{
		shape.Field("arrive", "Sessions that begin each second.", arrivals(), func(p *Profile) **pace.Schedule { return &p.Arrive }),
		shape.Field("duration", "Length of the measured part; of breakpoint, of each rate.", length(), func(p *Profile) *time.Duration { return &p.Duration }),
		shape.Field("fail_if", "What must not be so of sessions.", thresholds(), func(p *Profile) *[]load.Threshold { return &p.FailIf }),
	})
}

func flowShape(steps shape.Of[[]Step]) shape.Of[Flow] {
	return shape.Object("the flow", []shape.Key[Flow]{
		shape.Field("name", "What the flow is called in tables.", shape.Matching(partName, wantPart), func(f *Flow) *string { return &f.Name }).Must(),
		shape.Field("weight", "Its share among the flows (1).", shape.Integer(1, 1_000_000), func(f *Flow) *int { return &f.Weight }),
		shape.Field("steps", "What its users do.", steps, func(f *Flow) *[]Step { return &f.Steps }).Must(),
	})
}

func steps() shape.Of[[]Step] { return shape.List(shape.Named("step", stepShape), 1) }

func stepShape() shape.Of[Step] {
	return shape.Object("the step", []shape.Key[Step]{
		shape.Field("name", "What the step is called in tables; method and path by default.", shape.Matching(partName, wantPart), func(s *Step) *string { return &s.Name }),
		shape.Field("method", "The request's method: GET, or POST with a body.", shape.Matching(methodName, "a method in capitals, such as PUT"), func(s *Step) *string { return &s.Method }),
		shape.Field("url", "A request for this path, or whole URL. {{.name}} stands for a value.", shape.Matching(stepURL, "a path that starts with /, or a URL, without spaces and #; write {{.id}} without spaces"), func(s *Step) *string { return &s.URL }),
		shape.Field("header", "Header fields of the request.", fields(), func(s *Step) *map[string]string { return &s.Header }),
		shape.Field("body", "Its body.", shape.Content(), func(s *Step) *string { return &s.Body }),
		shape.Field("check", "What the answer must be; by default its status is below 400.", checkShape(), func(s *Step) *Check { return &s.Check }),
		shape.Field("take", "Values to take from the answer, by name.", shape.Dict(valueName, wantValue, sourceShape()), func(s *Step) *map[string]Source { return &s.Take }),
		shape.Field("go_on", "Whether the flow goes on if this step fails.", shape.Boolean(), func(s *Step) *bool { return &s.GoOn }),
		shape.Field("fail_if", "What must not be so of this step.", thresholds(), func(s *Step) *[]load.Threshold { return &s.FailIf }),
		shape.Field("think", "Time that passes after the step: "+thinkForms+".", thinking(), func(s *Step) *Think { return &s.Think }),
		shape.Field("when", "The condition on which steps are taken.", shape.Optional(shape.Named("condition", conditionShape)), func(s *Step) **Condition { return &s.When }),
		shape.Field("repeat", "How often steps are taken, at most.", shape.Integer(1, 1000), func(s *Step) *int { return &s.Repeat }),
		shape.Field("while", "The condition on which steps are taken once more.", shape.Optional(shape.Named("condition", conditionShape)), func(s *Step) **Condition { return &s.While }),
		shape.Field("steps", "The steps of a condition or a loop.", steps(), func(s *Step) *[]Step { return &s.Steps }),
		shape.Field("else", "The steps taken where the condition is not so.", steps(), func(s *Step) *[]Step { return &s.Else }),
	})
}

func checkShape() shape.Of[Check] {
	return shape.Object("check", []shape.Key[Check]{
		shape.Field("status", "Statuses, one of which the answer must have.", shape.List(shape.Integer[int64](100, 599), 1), func(c *Check) *[]int64 { return &c.Status }),
		shape.Field("contains", "Text that the body must contain.", shape.Content(), func(c *Check) *string { return &c.Contains }),
		shape.Field("matches", "A regular expression that the body must match.", expression(), func(c *Check) *string { return &c.Matches }),
		shape.Field("header", "Header fields that the answer must have.", fields(), func(c *Check) *map[string]string { return &c.Header }),
		shape.Field("json", "Values that the body must have, by path.", shape.Dict(jsonPath, wantPath, shape.Anything()), func(c *Check) *map[string]any { return &c.JSON }),
	})
}

func sourceShape() shape.Of[Source] {
	return shape.Object("the value", []shape.Key[Source]{
		shape.Field("json", "Its path in a JSON body: keys joined by dots, [0] the first, [-1] the last, [any] any of a list.", shape.Matching(jsonPath, wantPath), func(s *Source) *string { return &s.JSON }),
		shape.Field("header", "The answer's header field.", shape.Matching(fieldName, "a field's name, such as X-Token"), func(s *Source) *string { return &s.Header }),
		shape.Field("cookie", "The cookie's name.", shape.Argument(), func(s *Source) *string { return &s.Cookie }),
		shape.Field("regexp", "A regular expression: its first group in the body, or what matches.", expression(), func(s *Source) *string { return &s.Regexp }),
		shape.Field("optional", "Whether the flow goes on, the value unset, if it cannot be taken.", shape.Boolean(), func(s *Source) *bool { return &s.Optional }),
	}, shape.ExactlyOne("json", "header", "cookie", "regexp"))
}

func conditionShape() shape.Of[Condition] {
	return shape.Object("the condition", []shape.Key[Condition]{
		shape.Field("value", "The name of the value that is compared.", shape.Matching(valueName, wantValue), func(c *Condition) *string { return &c.Value }),
		shape.Field("is", "It is equal to this.", shape.Anything(), func(c *Condition) *any { return &c.Is }),
		shape.Field("is_not", "It is anything but this, or unset.", shape.Anything(), func(c *Condition) *any { return &c.IsNot }),
		shape.Field("matches", "It matches this regular expression.", expression(), func(c *Condition) *string { return &c.Matches }),
		shape.Field("above", "It is a number above this.", shape.Optional(shape.Number()), func(c *Condition) **float64 { return &c.Above }),
		shape.Field("below", "It is a number below this.", shape.Optional(shape.Number()), func(c *Condition) **float64 { return &c.Below }),
		shape.Field("set", "Whether there is a value.", shape.Optional(shape.Boolean()), func(c *Condition) **bool { return &c.Set }),
		shape.Field("chance", "Without a value: how often it is so, at random.", shape.Optional(shape.Percent()), func(c *Condition) **float64 { return &c.Chance }),
	}, shape.ExactlyOne("is", "is_not", "matches", "above", "below", "set", "chance"))
}

func length() shape.Of[time.Duration] { return shape.Duration(time.Millisecond, longest) }

func fields() shape.Of[map[string]string] {
	return shape.Dict(fieldName, "letters, digits, - and _", shape.Matching(fieldValue, "one line of text without control characters (numbers and true or false in quotes)"))
}

func arrivals() shape.Of[*pace.Schedule] {
	return shape.Figure("sessions a second: "+pace.Forms, func(s string) (*pace.Schedule, bool) {
		p, err := pace.Parse(s, 1)
		return p, err == nil
	})
}

func thresholds() shape.Of[[]load.Threshold] {
	one := shape.Text(shape.Schema{Type: "string"}, "a threshold such as p99>50ms, mean>10ms, errors>1% or rate<100/s", func(s string) (load.Threshold, bool) {
		t, err := load.ParseThreshold(s)
		return t, err == nil
	})
	return shape.List(one, 1)
}

func expression() shape.Of[string] {
	return shape.Text(shape.Schema{Type: "string", MinLength: 1}, "a regular expression as Go's package regexp reads it", func(s string) (string, bool) {
		_, err := regexp.Compile(s)
		return s, err == nil && s != ""
	})
}

func thinking() shape.Of[Think] {
	return shape.Text(shape.Schema{Type: "string"}, "a time to think: "+thinkForms, func(s string) (Think, bool) {
		t, err := ParseThink(s)
		return t, err == nil
	})
}
