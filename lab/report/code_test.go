package report_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/report"
)

// Machine code is shown around its calls at a terminal, and whole elsewhere.
func TestCode(t *testing.T) {
	run := synthetic(1)
	code := record.Code{Arms: []string{"one", "three"}, BuildID: "b1d", Func: "main.(*open).ServeHTTP", Calls: "indirect"}
	for _, text := range []string{"CMPQ SP, 0x10(R14)", "JBE 0x1", "PUSHQ BP", "MOVQ SP, BP", "SUBQ $0x20, SP", "MOVQ 0(AX), R8", "MOVQ 0x8(AX), AX", "MOVQ 0x18(R8), R9", "MOVQ DX, CX", "CALL R9", "POPQ BP", "RET"} {
		code.Instructions = append(code.Instructions, record.Instruction{At: "open.go:12", Text: text, Call: strings.HasPrefix(text, "CALL")})
	}
	run.Manifest.Code = []record.Code{code}
	a := analyse(t, run)

	var text, page, object bytes.Buffer
	if err := report.Text(&text, a, doc.TextOptions{}); err != nil {
		t.Fatal(err)
	}
	for want, there := range map[string]bool{
		"Machine code": true, "main.(*open).ServeHTTP in one, three: calls indirect": true, "    ▸ open.go:12  CALL R9\n": true,
		"      open.go:12  MOVQ 0(AX), R8\n": true, "CMPQ SP": false, "PUSHQ BP": true, "JBE": false, "RET": false,
	} {
		if strings.Contains(text.String(), want) != there {
			t.Errorf("text: %q is there: %t, want %t", want, !there, there)
		}
	}
	if err := report.HTML(&page, run, a); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`<details id="code">`, "▸ open.go:12  CALL R9\n", "CMPQ SP, 0x10(R14)", "one, three: calls indirect"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("HTML: no %q", want)
		}
	}
	if err := report.JSON(&object, a); err != nil {
		t.Fatal(err)
	}
	var got struct{ Code []record.Code }
	if err := json.Unmarshal(object.Bytes(), &got); err != nil || len(got.Code) != 1 || len(got.Code[0].Instructions) != 12 {
		t.Errorf("JSON: got %+v, %v, want the whole code", got.Code, err)
	}
}
