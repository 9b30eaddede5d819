package doctor_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/tarehq/tare/cost/doctor"
)

// blanks are without end.
type blanks struct{}

func (blanks) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = ' '
	}
	return len(b), nil
}

// TestLoadRefusesBombs packs what would take gigabytes, and what is cut off.
func TestLoadRefusesBombs(t *testing.T) {
	repeated := func(what string) io.Reader {
		return io.MultiReader(strings.NewReader(`{"Waits":[`), strings.NewReader(strings.Repeat(what+",", 8<<20)), strings.NewReader(what+"]}"))
	}
	for _, tc := range []struct {
		name string
		text io.Reader
		want error
	}{
		{"blanks", io.LimitReader(blanks{}, 256<<20+1), doctor.ErrTooLarge},
		{"empty waits", repeated("{}"), doctor.ErrTooLarge},
		{"no waits", repeated("null"), doctor.ErrTooLarge},
		{"little", strings.NewReader(`{"Waits":[{},null]}`), nil},
	} {
		var b bytes.Buffer
		z, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(z, tc.text); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		packed := b.Bytes()
		if _, err := doctor.Load(bytes.NewReader(packed)); !errors.Is(err, tc.want) {
			t.Errorf("%s: error %v, want %v", tc.name, err, tc.want)
		}
		if tc.want != nil {
			continue
		}
		if _, err := doctor.Load(bytes.NewReader(packed[:len(packed)-4])); err == nil {
			t.Errorf("%s, cut off: no error", tc.name)
		}
	}
}
