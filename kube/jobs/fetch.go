package jobs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/tarehq/tare/kube/carry"
	"github.com/tarehq/tare/kube/parcel"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	fetchWithin = 5 * time.Minute // all tries
	tries       = 10
)

// Fetch fetches the outcome of a run that is Done. It can be fetched again, until Remove or
// ten minutes have passed. config is that of c.
func Fetch(ctx context.Context, config *rest.Config, c client.Client, namespace, name string) (*parcel.Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchWithin)
	defer cancel()
	o, err := fetch(ctx, config, c, namespace, name)
	if err != nil {
		return nil, fmt.Errorf("fetching the outcome of %s: %w", name, err)
	}
	return o, nil
}

func fetch(ctx context.Context, config *rest.Config, c client.Client, namespace, name string) (*parcel.Outcome, error) {
	pods := new(corev1.PodList)
	role := client.MatchingLabels{instanceLabel: name, componentLabel: coordinatorRole}
	if err := c.List(ctx, pods, client.InNamespace(namespace), role); err != nil {
		return nil, err
	}
	if len(pods.Items) == 0 {
		return nil, errors.New("the coordinator's pod is gone")
	}
	secret := new(corev1.Secret)
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, secret); err != nil {
		return nil, err
	}
	security, err := callerTLS(secret.Data, hostOf(name, 0, name, namespace))
	if err != nil {
		return nil, err
	}
	at, err := podURL(config, namespace, pods.Items[0].Name)
	if err != nil {
		return nil, err
	}
	for try := 1; ; try++ {
		o, err := fetchOnce(ctx, config, at, security)
		if err == nil || try == tries || ctx.Err() != nil {
			return o, err
		}
		select {
		case <-ctx.Done():
		case <-time.After(500 * time.Millisecond): // the container may have begun, and not listen yet
		}
	}
}

func fetchOnce(ctx context.Context, config *rest.Config, at *url.URL, security *tls.Config) (*parcel.Outcome, error) {
	forward, err := openForward(ctx, config, at)
	if err != nil {
		return nil, err
	}
	defer forward.close()
	return get(ctx, forward.port, security)
}

// callerTLS is what the coordinator's certificate of a run makes of its owner.
func callerTLS(data map[string][]byte, host string) (*tls.Config, error) {
	pair, err := tls.X509KeyPair(data["coordinator.pem"], data["coordinator.key"])
	if err != nil {
		return nil, fmt.Errorf("reading the certificate of the run: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data["ca.pem"]) {
		return nil, errors.New("reading the certificate of the run: it has no authority")
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair}, RootCAs: pool, ServerName: host}, nil
}

// podURL is where a pod's ports are forwarded.
func podURL(config *rest.Config, namespace, pod string) (*url.URL, error) {
	own := rest.CopyConfig(config)
	own.APIPath, own.GroupVersion, own.NegotiatedSerializer = "/api", &corev1.SchemeGroupVersion, scheme.Codecs.WithoutConversion()
	rc, err := rest.RESTClientFor(own)
	if err != nil {
		return nil, err
	}
	return rc.Post().Namespace(namespace).Resource("pods").Name(pod).SubResource("portforward").URL(), nil
}

// forward is a port of this machine that leads to one of a pod.
type forward struct {
	port  uint16
	stop  chan struct{}
	ended chan error
}

func openForward(ctx context.Context, config *rest.Config, at *url.URL) (*forward, error) {
	transport, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		return nil, err
	}
	dialer := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, at)
	f := &forward{stop: make(chan struct{}), ended: make(chan error, 1)}
	ready := make(chan struct{})
	pf, err := portforward.NewOnAddresses(dialer, []string{"127.0.0.1"}, []string{"0:" + carry.Port}, f.stop, ready, io.Discard, io.Discard)
	if err != nil {
		return nil, err
	}
	go func() { f.ended <- pf.ForwardPorts() }()
	select {
	case <-ready:
	case err := <-f.ended:
		return nil, fmt.Errorf("forwarding a port: %w", err)
	case <-ctx.Done():
		close(f.stop)
		return nil, context.Cause(ctx)
	}
	ports, err := pf.GetPorts()
	if err != nil {
		f.close()
		return nil, err
	}
	f.port = ports[0].Local
	return f, nil
}

func (f *forward) close() {
	close(f.stop)
	<-f.ended
}

// get asks for the outcome.
func get(ctx context.Context, port uint16, security *tls.Config) (*parcel.Outcome, error) {
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: security, DisableKeepAlives: true}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("https://127.0.0.1:%d%s", port, carry.Path), nil)
	if err != nil {
		return nil, err
	}
	res, err := c.Do(request)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("got status %s", res.Status)
	}
	return parcel.Read(res.Body)
}
