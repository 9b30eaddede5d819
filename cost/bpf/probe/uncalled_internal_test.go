package probe

import (
	"slices"
	"testing"

	"github.com/tarehq/tare/cost"
)

func TestUncalled(t *testing.T) {
	owner := func(name string, decl int) cost.Owner {
		return cost.Owner{Kind: cost.Handler, Name: name, File: "/src/mw/mw.go", Decl: decl}
	}
	constructor, literal := owner("mw.Sign", 22), owner("mw.Sign", 23)
	maker := owner("mw.AccessLog", 70)
	tests := []struct {
		name   string
		owners []Watched
		walls  []cost.Wall
		want   []cost.Owner
	}{
		{"the constructor of what is called", []Watched{{Owner: maker}}, []cost.Wall{{Owner: maker}}, []cost.Owner{maker}},
		{"called", []Watched{{Owner: literal}}, []cost.Wall{{Owner: literal, Calls: 9}}, nil},
		{"one of two by that name", []Watched{{Owner: constructor}, {Owner: literal}}, []cost.Wall{{Owner: constructor}, {Owner: literal, Calls: 9}}, nil},
		{"called before", []Watched{{Owner: literal, Met: true}}, []cost.Wall{{Owner: literal}}, nil},
		{"not watched", []Watched{{Owner: maker, Reason: "no prologue"}}, nil, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := Uncalled(tt.owners, tt.walls); !slices.Equal(got, tt.want) {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestErrUncalled(t *testing.T) {
	owner := cost.Owner{Kind: cost.Handler, Name: "mw.AccessLog", File: "/src/mw/mw.go", Decl: 70}
	tests := []struct {
		requests float64
		seen     []string
		want     string
	}{
		{2345, []string{"mw.(*logger).ServeHTTP", "mw.Sign"}, "mw.AccessLog (mw/mw.go:70) was never called while 2,345 requests were handled; owners seen: mw.(*logger).ServeHTTP, mw.Sign"},
		{2345, nil, "mw.AccessLog (mw/mw.go:70) was never called while 2,345 requests were handled"},
		{0, []string{"mw.Sign"}, "mw.AccessLog (mw/mw.go:70) was never called; owners seen: mw.Sign"},
		{0, nil, "mw.AccessLog (mw/mw.go:70) was never called, and no request was seen: load the service"},
	}
	for _, tt := range tests {
		if got := errUncalled(owner, tt.requests, tt.seen).Error(); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

// TestSeesRequests takes calls for requests only where there were calls and no request.
func TestSeesRequests(t *testing.T) {
	called, idle := []cost.Wall{{Calls: 4200}}, []cost.Wall{{}}
	for _, tt := range []struct {
		name string
		own  Measurement
		want bool
	}{
		{"counted", Measurement{Walls: called, Requests: 4200}, true},
		{"no load yet", Measurement{Walls: idle}, true},
		{"an unknown engine", Measurement{Walls: called}, false},
	} {
		if got := tt.own.SeesRequests(); got != tt.want {
			t.Errorf("%s: got %t, want %t", tt.name, got, tt.want)
		}
	}
}
