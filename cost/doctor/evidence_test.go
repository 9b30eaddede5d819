package doctor_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/tarehq/tare/cost/doctor"
)

// pack compresses pieces of a text, each alone and once however often it is repeated.
func pack(t *testing.T, pieces ...string) []byte {
	t.Helper()
	var whole bytes.Buffer
	packed := map[string][]byte{}
	for _, piece := range pieces {
		if packed[piece] == nil {
			var b bytes.Buffer
			z := gzip.NewWriter(&b)
			if _, err := io.WriteString(z, piece); err != nil {
				t.Fatal(err)
			}
			if err := z.Close(); err != nil {
				t.Fatal(err)
			}
			packed[piece] = b.Bytes()
		}
		whole.Write(packed[piece])
	}
	return whole.Bytes()
}

// TestLoadRefusesBombs packs what would take gigabytes, and what is cut off.
func TestLoadRefusesBombs(t *testing.T) {
	repeated := func(what string) []byte {
		const pieces = 128
		piece := strings.Repeat(what+",", 8<<20/pieces)
		return pack(t, slices.Concat([]string{`{"Waits":[`}, slices.Repeat([]string{piece}, pieces), []string{what + "]}"})...)
	}
	little := pack(t, `{"Waits":[{},null]}`)
	for _, tc := range []struct {
		name   string
		packed []byte
		want   error
	}{
		{"blanks", pack(t, append(slices.Repeat([]string{strings.Repeat(" ", 1<<20)}, 256), " ")...), doctor.ErrTooLarge},
		{"empty waits", repeated("{}"), doctor.ErrTooLarge},
		{"no waits", repeated("null"), doctor.ErrTooLarge},
		{"little", little, nil},
	} {
		if _, err := doctor.Load(bytes.NewReader(tc.packed)); !errors.Is(err, tc.want) {
			t.Errorf("%s: error %v, want %v", tc.name, err, tc.want)
		}
	}
	if _, err := doctor.Load(bytes.NewReader(little[:len(little)-4])); err == nil {
		t.Error("cut off: no error")
	}
}
