package operator

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tarehq/tare/kube/api/v1alpha1"
	"github.com/tarehq/tare/kube/operator/headline"
	"github.com/tarehq/tare/kube/parcel"
	"github.com/tarehq/tare/stats/unit"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// mostMessage bounds a message in a status, in bytes.
const mostMessage = 512

// Exit statuses of tare that are not failures of its own.
const (
	statusDone         = 0
	statusThreshold    = 3
	statusInconclusive = 4
	statusNotOffered   = 5
)

// take ends a run in a cluster by its outcome. What doubts there were stay as its message.
func (p *pass) take(ctx context.Context, c *v1alpha1.ClusterRun, o *parcel.Outcome) {
	reason, doubt := c.Reason, c.Message
	if reason != reasonUnfit {
		reason, doubt = "", ""
	}
	status := int32(o.Status)
	c.ExitStatus = &status
	var err error
	if c.Verdict, err = headline.Of(p.kind, o.Output); err != nil {
		p.end(c, v1alpha1.Failed, reasonFailed, cmp.Or(headline.Complaint(o.Errors), err.Error()))
		return
	}
	phase := v1alpha1.Failed
	switch o.Status {
	case statusDone:
		phase = v1alpha1.Succeeded
	case statusThreshold:
		reason, doubt = cmp.Or(reason, "ThresholdFailed"), cmp.Or(doubt, c.Verdict)
	case statusInconclusive, statusNotOffered:
		phase = v1alpha1.Inconclusive
	}
	if phase != v1alpha1.Succeeded {
		reason, doubt = cmp.Or(reason, reasonFailed), cmp.Or(doubt, headline.Complaint(o.Errors), fmt.Sprintf("tare ended with status %d", o.Status))
	}
	if err := p.keep(ctx, c, o.Output); err != nil {
		p.say(corev1.EventTypeWarning, "ResultLost", "cluster %s: the verdict is in the status; keeping the result: %v", c.Name, err)
	}
	p.end(c, phase, reason, doubt)
}

func plural(n int, noun string) string { return unit.Plural(n, noun) }

// merge is the phase and the verdict of a run in all its clusters.
func merge(clusters []v1alpha1.ClusterRun) (v1alpha1.Phase, string) {
	count := map[v1alpha1.Phase]int{}
	for i := range clusters {
		phase := clusters[i].Phase
		if !phase.Ended() {
			phase = v1alpha1.Running
		}
		count[phase]++
	}
	phase := v1alpha1.Succeeded
	switch {
	case count[v1alpha1.Running] > 0:
		phase = v1alpha1.Running
	case count[v1alpha1.Failed] > 0:
		phase = v1alpha1.Failed
	case count[v1alpha1.Unreachable] == len(clusters):
		phase = v1alpha1.Unreachable
	case count[v1alpha1.Inconclusive] > 0:
		phase = v1alpha1.Inconclusive
	case count[v1alpha1.Unreachable] > 0:
		phase = v1alpha1.Partial
	}
	if len(clusters) == 1 {
		return phase, sayingOf(&clusters[0])
	}
	parts := make([]string, len(clusters))
	for i := range clusters {
		parts[i] = clusters[i].Name + ": " + sayingOf(&clusters[i])
	}
	return phase, headline.Line(fmt.Sprintf("%d of %s succeeded; %s", count[v1alpha1.Succeeded], plural(len(clusters), "cluster"), strings.Join(parts, "; ")))
}

// sayingOf is what a cluster has to say: its verdict, or why there is none.
func sayingOf(c *v1alpha1.ClusterRun) string {
	switch {
	case c.Verdict != "":
		return c.Verdict
	case c.Phase == v1alpha1.Unreachable:
		return "not reached: " + c.Message
	}
	return cmp.Or(headline.Line(c.Message), strings.ToLower(string(c.Phase)))
}

// mostResult is how much a ConfigMap may hold, in bytes, with room for its names.
const mostResult = 1_000_000

// keep writes a result to a ConfigMap beside the resource, compressed if it is large.
func (p *pass) keep(ctx context.Context, c *v1alpha1.ClusterRun, output []byte) error {
	result := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.res.GetNamespace(), Name: p.status.Active.Name + "-" + c.Name, Labels: p.labels(c)},
	}
	result.OwnerReferences = []metav1.OwnerReference{p.self()}
	if len(output) <= mostResult {
		result.Data = map[string]string{"result.json": string(output)}
	} else {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, err := w.Write(output)
		if err := errors.Join(err, w.Close()); err != nil {
			return err
		}
		if b.Len() > mostResult {
			return fmt.Errorf("it has %s, and a ConfigMap holds a million at most", plural(b.Len(), "byte"))
		}
		result.BinaryData = map[string][]byte{"result.json.gz": b.Bytes()}
	}
	if err := client.IgnoreAlreadyExists(p.direct.Create(ctx, result)); err != nil {
		return err
	}
	c.Result = result.Name
	return nil
}

// forget removes the results of a run that leaves the history. What cannot be removed goes
// with the resource.
func (p *pass) forget(ctx context.Context, run v1alpha1.Run) {
	for _, c := range run.Clusters {
		if c.Result == "" {
			continue
		}
		err := p.direct.Delete(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: p.res.GetNamespace(), Name: c.Result}})
		if err := client.IgnoreNotFound(err); err != nil {
			p.say(corev1.EventTypeWarning, "ResultKept", "removing the old result %s: %v", c.Result, err)
		}
	}
}
