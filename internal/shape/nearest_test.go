package shape_test

import (
	"testing"

	"github.com/tarehq/tare/internal/shape"
)

func TestNearest(t *testing.T) {
	known := []string{"nesting", "routers", "tuning", "go"}
	for word, want := range map[string]string{
		"nestng": "nesting", "nesitng": "nesting", "router": "routers", "turning": "tuning",
		"gi": "go", "g": "", "": "", "frameworks": "", "wholly different": "",
	} {
		if got := shape.Nearest(word, known); got != want {
			t.Errorf("Nearest(%q): got %q, want %q", word, got, want)
		}
	}
}
