package lab_test

import (
	"context"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/lab"
	"github.com/tarehq/tare/lab/arm"
	"github.com/tarehq/tare/lab/study"
)

// guarded is a study of a server that wants a token, which the study has from
// the environment.
func guarded(t *testing.T, token string) *study.Study {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+token || r.Header.Get("X-Text") != "$HOME {x} ${9}" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	t.Cleanup(server.Close)
	return &study.Study{
		Name: "guarded", AA: true, Control: "a", Threshold: 0.01,
		Arms: []study.Arm{{Name: "a", URL: server.URL}, {Name: "b", URL: server.URL}},
		Workloads: []study.Workload{{Name: "w", Schedule: "constant", Rate: study.Rate{PerSecond: 100}, Targets: []study.Target{
			{Path: "/", Header: map[string]string{"Authorization": "Bearer ${LAB_TEST_TOKEN}", "X-Text": "$HOME {x} ${9}"}},
		}}},
		Primary: study.Primary{Metric: "response_p50", Workload: "w"},
		Trial:   study.Trial{WarmUp: 10 * time.Millisecond, Measure: 100 * time.Millisecond, Slice: 10 * time.Millisecond},
	}
}

func TestSecretsAreSentAndNotKept(t *testing.T) {
	const token = "s3cr3t-0123456789"
	t.Setenv("LAB_TEST_TOKEN", token)
	dir := filepath.Join(t.TempDir(), "run")
	s := guarded(t, token)
	run, err := lab.Run(context.Background(), lab.Options{Study: s, Builder: &arm.Builder{}, Dir: dir, Blocks: 1})
	if err != nil {
		t.Fatal(err)
	}
	if len(run.Trials) == 0 {
		t.Fatal("got no trial")
	}
	if got := run.Manifest.Study.Workloads[0].Targets[0].Header["Authorization"]; got != "Bearer ${LAB_TEST_TOKEN}" {
		t.Errorf("recorded is %q, want the variable's name", got)
	}
	if got := s.Workloads[0].Targets[0].Header["Authorization"]; got != "Bearer ${LAB_TEST_TOKEN}" {
		t.Errorf("the caller's study was changed: %q", got)
	}
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if strings.Contains(string(data), token) {
			t.Errorf("%s holds the token", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestSecretMissing(t *testing.T) {
	t.Setenv("LAB_TEST_TOKEN", "")
	os.Unsetenv("LAB_TEST_TOKEN") // Setenv puts it back
	dir := filepath.Join(t.TempDir(), "run")
	_, err := lab.Run(context.Background(), lab.Options{Study: guarded(t, ""), Builder: &arm.Builder{}, Dir: dir, Blocks: 1})
	const want = "workload w: header Authorization: ${LAB_TEST_TOKEN} is not set in the environment"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %q", err, want)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Errorf("%s was made", dir)
	}
}
