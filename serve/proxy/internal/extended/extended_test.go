package extended

import "testing"

func TestWith(t *testing.T) {
	for settings, want := range map[string]string{"": "http2xconnect=1", "http2debug=1": "http2debug=1,http2xconnect=1"} {
		if got := with(settings); got != want {
			t.Errorf("with %q: got %q, want %q", settings, got, want)
		}
	}
}
