package report_test

import (
	"bytes"
	"testing"

	"github.com/tarehq/tare/lab/report"
)

func TestHTML(t *testing.T) {
	r := synthetic(1)
	var b bytes.Buffer
	if err := report.HTML(&b, r, analyse(t, r)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"P1.nesting", "none again", "the last line is torn"} {
		if !bytes.Contains(b.Bytes(), []byte(want)) {
			t.Errorf("the report does not hold %q", want)
		}
	}
}
