package flowverb

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strings"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/load/flow/script"
	"github.com/tarehq/tare/load/source"
)

// write writes a first flow file of the requests in an archive or a document.
func (c *Command) write(t *cli.Terminal) error {
	if strings.Contains(c.File, "://") {
		return cli.Usage("tare flow new.yaml --from site.har writes a file, and --base says where it asks", fmt.Errorf("--from writes a flow, and %s is a URL", c.File))
	}
	if _, err := os.Stat(c.File); !errors.Is(err, fs.ErrNotExist) {
		return cli.Usage("name a new file", fmt.Errorf("--from: %s is there already", c.File))
	}
	all, warnings, err := source.ReadFile(c.From)
	if err != nil {
		return cli.Usage("--from takes an HTTP archive (HAR) or an OpenAPI 3 document", fmt.Errorf("--from: %w", err))
	}
	base := cmp.Or(c.Base, "http://localhost:8080")
	text, left := draft(base, all)
	for _, w := range append(warnings, left...) {
		t.Note("%v", w)
	}
	if _, err := script.Parse(c.File, []byte(text), ""); err != nil {
		return &cli.Failure{Status: cli.ExitFailed, Err: fmt.Errorf("--from %s: %w", c.From, err), Hint: "these requests cannot be steps"}
	}
	if err := cli.WriteFile(c.File, func(w io.Writer) error { _, err := io.WriteString(w, text); return err }); err != nil {
		return err
	}
	t.Note("wrote %s, which asks %s (base, or --base here); try it by tare flow %s --profile smoke", c.File, base, c.File)
	return nil
}

// secrets are header fields that belong to one person; cookies are kept anew.
var secrets = map[string]bool{"cookie": true, "authorization": true, "proxy-authorization": true}

// password finds the names that forms give passwords.
var password = regexp.MustCompile(`(?i)(passw|pwd|secret)[a-z0-9_-]*"?\s*[=:]`)

var headerName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// draft is the text of a flow that asks for all in turn, and what was left out. JSON's texts
// are texts of YAML too.
func draft(base string, all []source.Request) (text string, left []error) {
	quote := func(s string) string {
		var b strings.Builder
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		_ = e.Encode(s) // a string has a form
		return strings.TrimSuffix(b.String(), "\n")
	}
	var b strings.Builder
	fmt.Fprintf(&b, "base: %s\nusers: {arrive: 1/s} # sessions a second\nduration: 1m\ncookies: true\nflows:\n  - name: recorded\n    steps:\n", base)
	for i, r := range all {
		if strings.Contains(r.Body, "{{") {
			left = append(left, fmt.Errorf("leaving out %s %s: its body has {{, which would open a field", r.Method, r.Path))
			continue
		}
		path := strings.ReplaceAll(r.Path, "{{", "%7B%7B")
		fmt.Fprintf(&b, "      - name: step-%d\n        method: %s\n        url: %s\n", i+1, strings.ToUpper(r.Method), quote(path))
		fields := ""
		for _, h := range r.Header {
			switch {
			case secrets[strings.ToLower(h.Name)]:
				left = append(left, fmt.Errorf("leaving out %s of %s: log users in by a step, and take what it needs", h.Name, r.Path))
			case headerName.MatchString(h.Name) && h.Value != "" && !strings.Contains(h.Value, "{{") && !strings.Contains(fields, "\n          "+h.Name+":"):
				fields += fmt.Sprintf("\n          %s: %s", h.Name, quote(h.Value))
			}
		}
		if fields != "" {
			fmt.Fprintf(&b, "        header:%s\n", fields)
		}
		if r.Body != "" {
			fmt.Fprintf(&b, "        body: %s\n", quote(r.Body))
		}
		if password.MatchString(r.Body) {
			left = append(left, fmt.Errorf("the body of %s %s has a password as it was recorded: replace it, by a feed for instance", r.Method, r.Path))
		}
		b.WriteString("        think: lognormal:1s/0.5\n")
	}
	return b.String(), left
}
