package operator

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/kube/api/v1alpha1"
	"github.com/tarehq/tare/kube/operator/headline"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestMerge(t *testing.T) {
	part := func(phase v1alpha1.Phase) v1alpha1.ClusterRun {
		return v1alpha1.ClusterRun{Name: strings.ToLower(string(phase)), Phase: phase, Message: "why"}
	}
	for _, tt := range []struct {
		phases []v1alpha1.Phase
		want   v1alpha1.Phase
	}{
		{[]v1alpha1.Phase{v1alpha1.Succeeded, v1alpha1.Succeeded}, v1alpha1.Succeeded},
		{[]v1alpha1.Phase{v1alpha1.Succeeded, v1alpha1.Preparing}, v1alpha1.Running},
		{[]v1alpha1.Phase{v1alpha1.Failed, v1alpha1.Pending}, v1alpha1.Running},
		{[]v1alpha1.Phase{v1alpha1.Succeeded, v1alpha1.Failed, v1alpha1.Unreachable}, v1alpha1.Failed},
		{[]v1alpha1.Phase{v1alpha1.Succeeded, v1alpha1.Inconclusive, v1alpha1.Unreachable}, v1alpha1.Inconclusive},
		{[]v1alpha1.Phase{v1alpha1.Succeeded, v1alpha1.Unreachable}, v1alpha1.Partial},
		{[]v1alpha1.Phase{v1alpha1.Unreachable, v1alpha1.Unreachable}, v1alpha1.Unreachable},
		{[]v1alpha1.Phase{v1alpha1.Failed}, v1alpha1.Failed},
	} {
		var all []v1alpha1.ClusterRun
		for _, phase := range tt.phases {
			all = append(all, part(phase))
		}
		got, verdict := merge(all)
		if got != tt.want || verdict == "" || strings.Contains(verdict, "\n") {
			t.Errorf("%v: got %s, %q, want %s and a line", tt.phases, got, verdict, tt.want)
		}
	}
	var many []v1alpha1.ClusterRun
	for i := range 16 {
		many = append(many, v1alpha1.ClusterRun{Name: fmt.Sprint(i), Phase: v1alpha1.Succeeded, Verdict: strings.Repeat("µ", 500)})
	}
	if _, verdict := merge(many); len(verdict) > headline.Most || !strings.HasPrefix(verdict, "16 of 16 clusters succeeded; 0: µµ") || !strings.HasSuffix(verdict, "µ …") {
		t.Errorf("got %d bytes, %.60q, want at most %d", len(verdict), verdict, headline.Most)
	}
}

// TestReadKubeconfig refuses what would run a program or read a file of the operator's.
func TestReadKubeconfig(t *testing.T) {
	const form = "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\nclusters: [{name: k, cluster: {server: 'https://127.0.0.1:1'%s}}]\nusers: [{name: u, user: {%s}}]\n"
	for _, tt := range []struct{ cluster, user, want string }{
		{"", "token: x", ""},
		{", certificate-authority: /etc/ca.pem", "token: x", "names a file"},
		{"", "exec: {apiVersion: client.authentication.k8s.io/v1, command: sh, interactiveMode: Never}", "has exec"},
		{"", "auth-provider: {name: gcp}", "has auth-provider"},
		{"", "tokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token", "has tokenFile"},
		{"", "client-certificate: /c.pem", "has client-certificate"},
		{"", "client-key: /c.key", "has client-key"},
	} {
		config, err := readKubeconfig(fmt.Appendf(nil, form, tt.cluster, tt.user))
		switch {
		case tt.want == "" && (err != nil || config.Host != "https://127.0.0.1:1" || config.Timeout != answerTime):
			t.Errorf("%s: got %+v, %v", tt.user, config, err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%s %s: got %v, want an error with %q", tt.cluster, tt.user, err, tt.want)
		}
	}
	for _, text := range []string{"", "no yaml: {", "apiVersion: v1\nkind: Config\n"} {
		if config, err := readKubeconfig([]byte(text)); err == nil {
			t.Errorf("%q: got %+v, want an error", text, config)
		}
	}
}

func TestClassify(t *testing.T) {
	forbidden := func(why string) error {
		return apierrors.NewForbidden(schema.GroupResource{Group: "batch", Resource: "jobs"}, "shop-l1", errors.New(why))
	}
	for _, tt := range []struct {
		err    error
		reason string
		waits  bool
	}{
		{fmt.Errorf("asking: %w", errMissingRights), reasonRights, true},
		{forbidden("User \"tare\" cannot create resource \"jobs\""), reasonRights, true},
		{fmt.Errorf("starting run shop-l1: %w", forbidden("exceeded quota: few, requested: count/jobs.batch=1, used: count/jobs.batch=2, limited: count/jobs.batch=2")), reasonQuota, true},
		{errTerminating, reasonConflict, true},
		{fmt.Errorf("%w: there is no Secret west", errNoKubeconfig), reasonUnreachable, true},
		{errors.New("spec is wrong"), reasonFailed, false},
		{fmt.Errorf("%w: %w", errNotFetched, errors.New("error upgrading connection: refused")), reasonUnreachable, true},
	} {
		if reason, waits := classify(tt.err); reason != tt.reason || waits != tt.waits {
			t.Errorf("%v: got %s, %t, want %s, %t", tt.err, reason, waits, tt.reason, tt.waits)
		}
	}
	client := &http.Client{Timeout: time.Second}
	if _, err := client.Get("http://127.0.0.1:1/"); err == nil {
		t.Error("somebody listens on port 1")
	} else if reason, waits := classify(fmt.Errorf("applying: %w", err)); reason != reasonUnreachable || !waits {
		t.Errorf("%v: got %s, %t, want it unreachable", err, reason, waits)
	}
}

// TestJudge gives a run up after a while: sooner for want of a right than for want of room in a
// quota, which other runs may give back.
func TestJudge(t *testing.T) {
	quota := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "x", errors.New("exceeded quota: few"))
	for _, tt := range []struct {
		err           error
		waits, giveUp time.Duration
		reason        string
	}{
		{errMissingRights, patience, patience + time.Second, reasonRights},
		{quota, patience + time.Second, beginTime + time.Second, reasonQuota},
	} {
		begun := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		p, c := &pass{}, &v1alpha1.ClusterRun{Name: "west", Phase: v1alpha1.Preparing}
		for _, after := range []time.Duration{0, tt.waits, tt.giveUp} {
			p.now = begun.Add(after)
			p.judge(c, tt.err)
			if want := after == tt.giveUp; c.Phase.Ended() != want || c.Reason != tt.reason {
				t.Errorf("%v, after %v: got %s for %q, want it given up: %t, for %q", tt.err, after, c.Phase, c.Reason, want, tt.reason)
			}
		}
		if len(p.later) != 1 {
			t.Errorf("%v: %d events, want one", tt.err, len(p.later))
		}
		waiting := &v1alpha1.ClusterRun{Phase: v1alpha1.Preparing}
		p.judge(waiting, tt.err)
		if p.judge(waiting, nil); waiting.Reason != "" || waiting.WaitsSince != nil {
			t.Errorf("%v is over: got %+v, want nothing of it left", tt.err, waiting)
		}
	}
}
