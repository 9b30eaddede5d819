package compose

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/internal/secret"
	"github.com/tarehq/tare/lab"
	"github.com/tarehq/tare/lab/arm"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/load/source"
)

// AskFlags say what the services are asked for.
type AskFlags struct {
	Path    []string `sep:"none" help:"Path to request, as '[METHOD ]PATH[ WEIGHT]'; repeatable (default: /)." placeholder:"PATH"`
	Targets string   `help:"File with a path per line: [METHOD] PATH [WEIGHT]; # begins a comment." placeholder:"FILE"`
	From    string   `help:"Request what an HTTP archive (HAR) or an OpenAPI document lists." placeholder:"FILE"`
	cli.Headers
	Body     string `short:"b" xor:"body" help:"Body of every request that is not a GET or HEAD." placeholder:"TEXT"`
	BodyFile string `xor:"body" help:"File that holds that body." placeholder:"FILE"`
	Status   int    `help:"Status that responses must have (default: the first service's, below 400)." placeholder:"CODE"`
}

const (
	mostTargets = 1000 // that one command asks for
	mostWeight  = 1000 // that a study file allows
	mostIgnored = 5    // of which a file's reader is told
)

// Request has the plan ask for what the flags say.
func (p *Plan) Request(f *AskFlags) error {
	named, err := f.named()
	if err != nil {
		return err
	}
	imported, ignored, err := f.imported()
	if err != nil {
		return err
	}
	p.Targets, p.imported, p.ignored = slices.Concat(named, imported), len(imported), ignored
	if len(p.Targets) == 0 {
		path, err := p.takePath()
		if err != nil {
			return err
		}
		p.Targets = []study.Target{{Path: path}}
	}
	if i := slices.IndexFunc(p.Arms, func(a Service) bool { return strings.ContainsAny(beforeHost.ReplaceAllString(a.URL, ""), "/?#") }); i >= 0 {
		return cli.Usage("name the services as http://HOST:PORT; --path '/x?q=1' asks with a query",
			fmt.Errorf("%s says what to ask for, and so do flags", secret.Mask(p.Arms[i].URL)))
	}
	if len(p.Targets) > mostTargets {
		return cli.Usage("", fmt.Errorf("%d different requests, at most %d", len(p.Targets), mostTargets))
	}
	return f.complete(p.Targets)
}

// takePath takes the path off services that are URLs and returns it: it is what they are
// asked for where no flag says that. All have the same.
func (p *Plan) takePath() (string, error) {
	path := ""
	for i := range p.Arms {
		a := &p.Arms[i]
		if a.URL == "" {
			continue
		}
		u, err := url.Parse(a.Text)
		if err != nil {
			return "", cli.Usage("http://localhost:8080/orders/7", err)
		}
		if own := u.RequestURI(); path == "" || own == path {
			path = own
		} else {
			return "", cli.Usage("name the services as http://HOST:PORT, and what each is asked for by --path",
				fmt.Errorf("services are asked for the same path, and %s has %s where others have %s", a.Text, own, path))
		}
		a.URL = (&url.URL{Scheme: u.Scheme, User: u.User, Host: u.Host}).String()
	}
	return cmp.Or(path, "/"), nil
}

// named are the requests of --path and --targets.
func (f *AskFlags) named() (all []study.Target, err error) {
	for _, text := range f.Path {
		var one study.Target
		line, err := source.ParseLine(text)
		if err == nil {
			one, err = asTarget(line)
		}
		if err != nil {
			return nil, cli.Usage("--path /orders/7, --path 'POST /orders', --path '/ 3'", fmt.Errorf("--path %q: %w", text, err))
		}
		all = append(all, one)
	}
	if f.Targets == "" {
		return all, nil
	}
	content, err := os.ReadFile(f.Targets)
	if err != nil {
		return nil, fmt.Errorf("--targets: %w", err)
	}
	lines, err := source.ParseList(f.Targets, string(content))
	if err != nil {
		return nil, cli.Usage(exampleLine, err)
	}
	for _, line := range lines {
		one, err := asTarget(line)
		if err != nil {
			return nil, cli.Usage(exampleLine, fmt.Errorf("%s: %w", line.At, err))
		}
		all = append(all, one)
	}
	return all, nil
}

// imported are the requests of --from, and what of the file is no request.
func (f *AskFlags) imported() (all []study.Target, ignored []error, err error) {
	if f.From == "" {
		return nil, nil, nil
	}
	requests, ignored, err := source.ReadFile(f.From)
	if err != nil {
		return nil, nil, fmt.Errorf("--from: %w", err)
	}
	for _, r := range requests {
		one := study.Target{Method: r.Method, Path: r.Path, Body: r.Body, Weight: min(r.Weight, mostWeight), Header: map[string]string{}}
		for _, h := range r.Header {
			setField(one.Header, h.Name, h.Value)
		}
		all = append(all, one)
	}
	return all, ignored, nil
}

// complete gives all targets the header and the body that the flags say.
func (f *AskFlags) complete(all []study.Target) error {
	fields, err := f.Fields()
	if err != nil {
		return err
	}
	body, used := f.Body, f.Body == "" && f.BodyFile == ""
	if f.BodyFile != "" {
		content, err := os.ReadFile(f.BodyFile)
		if err != nil {
			return fmt.Errorf("--body-file: %w", err)
		}
		body = string(content)
	}
	for i := range all {
		one := &all[i]
		if one.Header == nil && len(fields) > 0 {
			one.Header = map[string]string{}
		}
		for _, field := range fields {
			setField(one.Header, field.Name, field.Value)
		}
		if one.Body == "" && one.Method != "" && one.Method != http.MethodGet && one.Method != http.MethodHead {
			one.Body, used = body, true
		}
	}
	if !used {
		return cli.Usage("--path 'POST /orders' names the method", errors.New("no request takes the body: those without a method are GET"))
	}
	return nil
}

// setField sets a header field in place of one of the same name, however that is written.
func setField(header map[string]string, name, value string) {
	maps.DeleteFunc(header, func(other, _ string) bool { return strings.EqualFold(other, name) })
	header[name] = value
}

const exampleLine = "lines such as: GET /orders/7 3"

// asTarget returns what one line asks for.
func asTarget(line source.Request) (study.Target, error) {
	switch {
	case !strings.HasPrefix(line.Path, "/"):
		return study.Target{}, errors.New("a path begins with /")
	case line.Weight > mostWeight:
		return study.Target{}, fmt.Errorf("weight %d: want a whole number from 1 to %d", line.Weight, mostWeight)
	}
	return study.Target{Method: line.Method, Path: line.Path, Weight: line.Weight}, nil
}

// AskServices builds and starts each service once, and returns its answers to the targets. One
// that takes longer than p.Patience to get ready is an error.
func (p *Plan) AskServices(ctx context.Context, t *cli.Terminal, builder *arm.Builder) ([]lab.Answer, error) {
	s, err := p.Study("")
	if err != nil {
		return nil, err
	}
	progress := cli.NewProgress(t)
	defer progress.Done()
	show := func(e lab.Event) {
		if !t.Live && e.Stage == lab.Piloting {
			progress.Line(e.Text)
		}
		progress.Draw(e.Text)
	}
	return lab.Answers(ctx, lab.Options{Study: s, Builder: builder, Budget: p.Patience, FindProfiles: p.FindProfiles, Progress: show})
}

// leaveOut takes requests of --from off the targets that the control refuses, unless those
// are all, and returns the answers to the others.
func (p *Plan) leaveOut(answers []lab.Answer) []lab.Answer {
	n := len(p.Targets)
	var kept []lab.Answer
	var targets []study.Target
	var refused []error
	for at, a := range answers {
		one, control := p.Targets[at%n], answers[at%n]
		switch isFirst := at < n; {
		case at%n < n-p.imported || control.Status < http.StatusBadRequest:
			kept = append(kept, a)
			if isFirst {
				targets = append(targets, one)
			}
		case isFirst:
			refused = append(refused, fmt.Errorf("ignoring %s %s: %s answers with status %d", one.Method, one.Path, a.Arm, a.Status))
		}
	}
	if len(targets) == 0 {
		return answers
	}
	p.Targets, p.ignored = targets, slices.Concat(p.ignored, refused)
	return kept
}

// ignoredText says what of the file of --from is not asked for, the first few.
func (p *Plan) ignoredText() []string {
	var all []string
	for i, err := range p.ignored {
		if i == mostIgnored {
			return append(all, fmt.Sprintf("ignoring %d more", len(p.ignored)-i))
		}
		all = append(all, err.Error())
	}
	return all
}

// Settle takes from the services' answers what makes an answer correct, and returns what
// to warn of: what of a file is not asked for, how the services differ, and redirects. It is
// an error if they do not do the same: then there is nothing to compare.
func (p *Plan) Settle(answers []lab.Answer, status int) (warnings []string, err error) {
	if status == 0 {
		answers = p.leaveOut(answers)
	}
	warnings = p.ignoredText()
	for i := range p.Targets {
		one := &p.Targets[i]
		control := answers[i] // the control's come first
		what := strings.TrimSpace(one.Method + " " + one.Path)
		one.Verify.Status = control.Status
		if status != 0 {
			one.Verify.Status = status
		}
		if one.Verify.Status >= http.StatusBadRequest && status == 0 {
			return nil, cli.Usage(p.hintStatus(control.Status), fmt.Errorf("%s answers %s with status %d", control.Arm, what, control.Status))
		}
		same := control.Stable
		for at := i; at < len(answers); at += len(p.Targets) {
			a := answers[at]
			if a.Status != one.Verify.Status {
				return nil, cli.Usage("services that are compared answer alike; --status says which status is meant",
					fmt.Errorf("%s answers %s with status %d, want %d", a.Arm, what, a.Status, one.Verify.Status))
			}
			same = same && a.Stable && a.Same(control)
			if d := a.Difference(control.Answer); a.Stable && control.Stable && d != "" {
				warnings = append(warnings, fmt.Sprintf("%s answers %s with other content than %s, so they may not do the same work: %s", a.Arm, what, control.Arm, d))
			}
		}
		if one.Verify.Status/100 == 3 && status == 0 {
			warnings = append(warnings, fmt.Sprintf("%s answers %s with status %d, a redirect to %q, and only the redirect is measured: --path says what else to ask for",
				control.Arm, what, control.Status, control.Header.Get("Location")))
		}
		if same {
			one.Verify.SHA256 = control.SHA256
		}
	}
	if names := plainSecrets(p.Targets); len(names) > 0 {
		warnings = append(warnings, fmt.Sprintf("the study keeps the value of %s in plain text: '${NAME}' in its place reads a variable of the environment, which is not kept",
			strings.Join(names, ", ")))
	}
	return warnings, nil
}

// plainSecrets names the header fields that are secret by their names and have a value in the study.
func plainSecrets(targets []study.Target) []string {
	names := map[string]bool{}
	for _, one := range targets {
		for name, value := range one.Header {
			if secret.Is(name) && !strings.Contains(value, "${") {
				names[http.CanonicalHeaderKey(name)] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// hintStatus is what helps where the control answers with a status that is an error.
func (p *Plan) hintStatus(status int) string {
	hint := fmt.Sprintf("--path says what to ask for; --status %d if that is meant", status)
	if len(p.Arms) > 0 && p.Arms[0].Pkg != "" {
		hint += "; `tare init` finds paths in the source"
	}
	return hint
}
