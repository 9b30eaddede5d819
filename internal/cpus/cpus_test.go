package cpus_test

import (
	"slices"
	"testing"

	"github.com/tarehq/tare/internal/cpus"
)

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		list string
		want []int
	}{
		{"0", []int{0}}, {"0-3", []int{0, 1, 2, 3}}, {"0-1,4,6-7", []int{0, 1, 4, 6, 7}},
		{"", nil}, {"a", nil}, {"0-x", nil}, {"0-99999999", nil}, {"-1", nil},
	} {
		got, err := cpus.Parse(tt.list)
		if (err != nil) != (tt.want == nil) || !slices.Equal(got, tt.want) {
			t.Errorf("%q: got %v, %v, want %v", tt.list, got, err, tt.want)
		}
	}
}
