package testcluster

import (
	"context"
	"net"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// domain is that of all services.
const domain = "cluster.local"

// zone answers for the names of services without an address of their own, and of their pods,
// with what the API server says at that moment.
type zone struct{ client client.Reader }

// serve answers until the connection is closed.
func (z zone) serve(ctx context.Context, conn net.PacketConn) {
	buffer := make([]byte, 1500)
	for {
		n, from, err := conn.ReadFrom(buffer)
		if err != nil {
			return
		}
		question := slices.Clone(buffer[:n])
		go func() {
			if answer := z.answer(ctx, question); answer != nil {
				_, _ = conn.WriteTo(answer, from) // a lost answer is asked for again
			}
		}()
	}
}

// answer is nil for what is no question.
func (z zone) answer(ctx context.Context, packet []byte) []byte {
	var p dnsmessage.Parser
	header, err := p.Start(packet)
	if err != nil {
		return nil
	}
	q, err := p.Question()
	if err != nil {
		return nil
	}
	addresses := z.lookUp(ctx, strings.ToLower(q.Name.String()))
	reply := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: header.ID, Response: true, Authoritative: true, RecursionDesired: header.RecursionDesired, RecursionAvailable: true},
		Questions: []dnsmessage.Question{q},
	}
	if len(addresses) == 0 {
		reply.RCode = dnsmessage.RCodeNameError
	}
	for _, a := range addresses {
		if ip := net.ParseIP(a).To4(); ip != nil && q.Type == dnsmessage.TypeA {
			reply.Answers = append(reply.Answers, dnsmessage.Resource{
				Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: 1}, Body: &dnsmessage.AResource{A: [4]byte(ip)},
			})
		}
	}
	packed, err := reply.Pack()
	if err != nil {
		return nil
	}
	return packed
}

// lookUp finds SERVICE.NAMESPACE.svc or POD.SERVICE.NAMESPACE.svc of the cluster's domain.
func (z zone) lookUp(ctx context.Context, name string) []string {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	name, ok := strings.CutSuffix(name, ".svc."+domain+".")
	labels := strings.Split(name, ".")
	if !ok || len(labels) < 2 || len(labels) > 3 {
		return nil
	}
	host := ""
	if len(labels) == 3 {
		host, labels = labels[0], labels[1:]
	}
	service := new(corev1.Service)
	if err := z.client.Get(ctx, client.ObjectKey{Name: labels[0], Namespace: labels[1]}, service); err != nil {
		return nil
	}
	pods := new(corev1.PodList)
	if err := z.client.List(ctx, pods, client.InNamespace(labels[1]), client.MatchingLabels(service.Spec.Selector)); err != nil {
		return nil
	}
	var found []string
	for _, p := range pods.Items {
		ended := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed || p.DeletionTimestamp != nil
		if p.Status.PodIP == "" || ended || !service.Spec.PublishNotReadyAddresses && !isReady(p) {
			continue
		}
		if host == "" || p.Spec.Hostname == host && p.Spec.Subdomain == service.Name {
			found = append(found, p.Status.PodIP)
		}
	}
	return found
}

func isReady(p corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
