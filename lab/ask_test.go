package lab_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tarehq/tare/lab"
	"github.com/tarehq/tare/lab/arm"
	"github.com/tarehq/tare/lab/study"
)

// What is asked of an arm before the load is what the load asks, and one of several
// fields of a name is enough, as it is there.
func TestReadyAsksAsTheLoadDoes(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host != "shop.example" {
			http.Error(w, r.Host, http.StatusMisdirectedRequest)
			return
		}
		w.Header().Add("Vary", "Accept")
		w.Header().Add("Vary", "Origin")
		fmt.Fprint(w, "hello")
	}))
	defer srv.Close()
	s := small(t)
	s.Arms = []study.Arm{{Name: "a", URL: srv.URL}}
	s.Workloads = s.Workloads[:1]
	target := &s.Workloads[0].Targets[0]
	target.Header = map[string]string{"Host": "shop.example"}
	target.Verify.Header = map[string]string{"Vary": "Origin"}
	run, err := lab.Run(t.Context(), options(t, s))
	if err != nil {
		t.Fatal(err)
	}
	for _, tr := range run.Trials {
		if tr.Requests == 0 {
			t.Errorf("trial %d: %q", tr.Seq, tr.Invalid)
		}
	}
}

// How long a program takes to end is told with its answers. One that does not when asked to
// is ended after a second.
func TestAnswersTellEnding(t *testing.T) {
	all, err := lab.Answers(t.Context(), lab.Options{Study: small(t, "ok", "logs"), Builder: &arm.Builder{Cache: t.TempDir()}})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 2 || all[0].Ending <= 0 || all[1].Ending < time.Second {
		t.Errorf("got %+v, want that the second takes a second or more to end", all)
	}
}

// A program that answers 404 until it has read its routes is waited for. One that goes on
// with 4xx means it.
func TestAnswersWaitForRoutes(t *testing.T) {
	all, err := lab.Answers(t.Context(), lab.Options{Study: small(t, "reads routes", "wrong"), Builder: &arm.Builder{Cache: t.TempDir()}})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 2 || all[0].Status != http.StatusOK || all[1].Status != http.StatusTeapot {
		t.Errorf("got %+v, want statuses 200 and 418", all)
	}
}

// Scripts that are the same may run what lies beside them, which may differ.
func TestSameScriptsAreNoTwins(t *testing.T) {
	s := small(t, "ok", "ok")
	for i := range s.Arms {
		path := filepath.Join(t.TempDir(), "run")
		if err := os.WriteFile(path, fmt.Appendf(nil, "#!/bin/sh\nexec '%s'\n", s.Arms[i].Command[0]), 0o755); err != nil {
			t.Fatal(err)
		}
		s.Arms[i].Command = []string{path}
	}
	o := lab.Options{Study: s, Builder: &arm.Builder{Cache: t.TempDir()}}
	if all, err := lab.Answers(t.Context(), o); err != nil || len(all) != 2 {
		t.Errorf("in two folders: got %d answers, %v, want one of each", len(all), err)
	}
	s.Arms[1].Command = s.Arms[0].Command
	if _, err := lab.Answers(t.Context(), o); !errors.As(err, new(*lab.EqualError)) {
		t.Errorf("one and the same: got %v, want that there is nothing to compare", err)
	}
}
