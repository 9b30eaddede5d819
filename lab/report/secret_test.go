package report_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/lab/report"
)

// No form of a report shows what the command and the programs' arguments hold of secrets.
func TestSecrets(t *testing.T) {
	r := synthetic(1)
	r.Manifest.Command = []string{"tare", "ab", "it's", "-H", "Authorization: Bearer hunter2", "http://me:hunter2@a:1"}
	p := r.Manifest.Programs["one"]
	p.Args = []string{"-db=postgres://me:hunter2@db/shop"}
	r.Manifest.Programs["one"] = p
	a := analyse(t, r)
	var plain, page, programs bytes.Buffer
	if err := report.Text(&plain, a, doc.TextOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := report.HTML(&page, r, a); err != nil {
		t.Fatal(err)
	}
	if err := report.JSON(&programs, a); err != nil {
		t.Fatal(err)
	}
	for form, got := range map[string]string{"text": plain.String(), "HTML": page.String(), "JSON": programs.String()} {
		if strings.Contains(got, "hunter2") || !strings.Contains(got, "Authorization: …") {
			t.Errorf("%s shows secrets, or no command without them", form)
		}
	}
	if want := `tare ab 'it'\''s' -H 'Authorization: …' 'http://me:…@a:1'`; !strings.Contains(plain.String(), want) {
		t.Errorf("no %s in\n%s", want, plain.String())
	}
}
