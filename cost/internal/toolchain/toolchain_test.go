package toolchain

import "testing"

func TestNewest(t *testing.T) {
	for _, tc := range []struct {
		list []string
		want string
	}{
		{nil, "local"},
		{[]string{"v0.0.1-go1.9.2.linux-amd64", "v0.0.1-go1.27.10.linux-amd64", "v0.0.1-go1.27.9.linux-amd64", "v0.0.1-go1.28.0.linux-arm64"}, "go1.27.10"},
		{[]string{"v0.0.1-go1.27.4.linux-amd64", "v0.0.1-go1.28rc1.linux-amd64", "v0.0.1-go1.28beta1.linux-amd64"}, "go1.28rc1"},
		{[]string{"v0.0.1-go1.28rc1.linux-amd64", "v0.0.1-go1.28.0.linux-amd64"}, "go1.28.0"},
	} {
		if got := newest(tc.list); got != tc.want {
			t.Errorf("of %v: got %s, want %s", tc.list, got, tc.want)
		}
	}
}
