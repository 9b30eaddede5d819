// Package kube finds the servers of a Kubernetes service: it lists the service's
// EndpointSlices (discovery.k8s.io/v1), and watches them.
//
// It needs nothing but the API server's address and a token, which a pod has of itself.
// The service account must be allowed to list and watch endpointslices in the service's
// namespace.
//
// An endpoint gets requests while it is ready. If none is, those that end and still serve
// get them, as kube-proxy has it. If there are none of these either, there are no servers.
// While the API server cannot be reached, the servers that were found last stay.
package kube

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tarehq/tare/serve/proxy"
)

// Service is a service whose endpoints are servers. Name must be set.
type Service struct {
	Name string
	// Namespace is the service's. Empty: that of the pod.
	Namespace string
	// Port is the name of one of the service's ports. Empty: its only one, or the first.
	Port string

	// API is the API server's URL. Empty: that of the pod's cluster.
	API string
	// Account is the folder with token, ca.crt and namespace. Empty: that of the pod's
	// service account.
	Account string
}

const (
	account      = "/var/run/secrets/kubernetes.io/serviceaccount"
	listTime     = 15 * time.Second
	watchTime    = 4 * time.Minute // then the server ends a watch
	spareTime    = 30 * time.Second
	firstPause   = time.Second
	longestPause = 30 * time.Second
	mostBytes    = 32 << 20 // of a list, or of one event
	mostServers  = 256      // proxy's bound
)

// Watch watches the service until ctx ends. It calls found with an error, and with the
// servers whenever they change or an error came between. found is not called twice at a
// time.
func (s *Service) Watch(ctx context.Context, found func([]proxy.Server, error)) {
	w := &watch{found: found}
	pause := firstPause
	for ctx.Err() == nil {
		begun := time.Now()
		err := w.follow(ctx, s)
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, errGone) && time.Since(begun) > firstPause {
			continue // what is new is listed at once
		}
		w.told = nil
		found(nil, fmt.Errorf("watching the endpoints of service %s: %w", s.Name, err))
		if time.Since(begun) > longestPause {
			pause = firstPause
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
		case <-timer.C:
		}
		pause = min(2*pause, longestPause)
	}
}

// watch is what is known of a service.
type watch struct {
	found  func([]proxy.Server, error)
	slices map[string]slice
	told   []proxy.Server // nil: found knows of none
}

// slice is what is needed of an EndpointSlice.
type slice struct {
	Metadata struct {
		Name            string `json:"name"`
		ResourceVersion string `json:"resourceVersion"`
	} `json:"metadata"`
	Endpoints []endpoint `json:"endpoints"`
	Ports     []port     `json:"ports"`
}

type endpoint struct {
	Addresses  []string `json:"addresses"`
	Conditions struct {
		Ready       *bool `json:"ready"`
		Serving     *bool `json:"serving"`
		Terminating *bool `json:"terminating"`
	} `json:"conditions"`
	Zone string `json:"zone"`
}

type port struct {
	Name string `json:"name"`
	Port int    `json:"port"`
}

// event is one of a watch.
type event struct {
	Type   string          `json:"type"`
	Object json.RawMessage `json:"object"`
}

// errGone says that a watch cannot go on from where it was.
var errGone = errors.New("what was listed is too old")

// follow lists the slices, and watches them until that fails.
func (w *watch) follow(ctx context.Context, s *Service) error {
	c, err := s.connect()
	if err != nil {
		return err
	}
	defer c.http.CloseIdleConnections()
	version, err := w.list(ctx, c)
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		if version, err = w.events(ctx, c, version); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// list reads all slices.
func (w *watch) list(ctx context.Context, c *client) (version string, err error) {
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	body, err := c.get(ctx, nil)
	if err != nil {
		return "", err
	}
	defer body.Close()
	var all struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
		Items []slice `json:"items"`
	}
	if err := json.NewDecoder(io.LimitReader(body, mostBytes)).Decode(&all); err != nil {
		return "", fmt.Errorf("reading the list: %w", err)
	}
	w.slices = map[string]slice{}
	for _, s := range all.Items {
		w.slices[s.Metadata.Name] = s
	}
	w.tell(c.port)
	return all.Metadata.ResourceVersion, nil
}

// events reads events until the server ends the watch, and returns up to where.
func (w *watch) events(ctx context.Context, c *client, version string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, watchTime+spareTime)
	defer cancel()
	body, err := c.get(ctx, url.Values{
		"watch": {"1"}, "allowWatchBookmarks": {"true"}, "resourceVersion": {version},
		"timeoutSeconds": {fmt.Sprint(int(watchTime.Seconds()))},
	})
	if err != nil {
		return "", err
	}
	defer body.Close()
	bounded := &io.LimitedReader{R: body}
	for dec, n := json.NewDecoder(bounded), 0; ; n++ {
		bounded.N = mostBytes
		var e event
		if err := dec.Decode(&e); err == io.EOF && bounded.N > 0 {
			if n == 0 { // who ends each watch at once is not asked all the time
				return version, sleep(ctx, firstPause)
			}
			return version, nil
		} else if err != nil {
			return "", fmt.Errorf("reading an event: %w", err)
		}
		if version, err = w.take(&e, version); err != nil {
			return "", err
		}
		w.tell(c.port)
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// take takes an event, and returns up to where the watch has come.
func (w *watch) take(e *event, version string) (string, error) {
	if e.Type == "ERROR" {
		var status struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		}
		_ = json.Unmarshal(e.Object, &status) // else it has no code
		if status.Code == http.StatusGone {
			return "", errGone
		}
		return "", fmt.Errorf("the API server ended the watch: %d %s", status.Code, status.Message)
	}
	var s slice
	if err := json.Unmarshal(e.Object, &s); err != nil {
		return "", fmt.Errorf("reading an event: %w", err)
	}
	switch e.Type {
	case "ADDED", "MODIFIED":
		w.slices[s.Metadata.Name] = s
	case "DELETED":
		delete(w.slices, s.Metadata.Name)
	}
	return cmp.Or(s.Metadata.ResourceVersion, version), nil
}

// tell tells of the servers, if they changed.
func (w *watch) tell(portName string) {
	now := servers(w.slices, portName)
	if w.told == nil || !slices.Equal(now, w.told) {
		w.found(now, nil)
		w.told = append([]proxy.Server{}, now...)
	}
}

// servers are the endpoints that are to get requests, in a fixed order.
func servers(all map[string]slice, portName string) []proxy.Server {
	ready, ending := map[string]proxy.Server{}, map[string]proxy.Server{}
	for _, s := range all {
		n := s.port(portName)
		for _, e := range s.Endpoints {
			if len(e.Addresses) == 0 || n == 0 {
				continue
			}
			server := proxy.Server{Address: net.JoinHostPort(e.Addresses[0], fmt.Sprint(n)), Zone: e.Zone}
			is := func(v *bool, otherwise bool) bool { return v == nil && otherwise || v != nil && *v }
			switch {
			case proxy.CheckAddress(server.Address) != nil:
			case is(e.Conditions.Ready, true):
				ready[server.Address] = server
			case is(e.Conditions.Serving, false) && is(e.Conditions.Terminating, false):
				ending[server.Address] = server
			}
		}
	}
	if len(ready) == 0 {
		ready = ending
	}
	found := make([]proxy.Server, 0, len(ready))
	for _, s := range ready {
		found = append(found, s)
	}
	slices.SortFunc(found, func(a, b proxy.Server) int { return strings.Compare(a.Address, b.Address) })
	return found[:min(len(found), mostServers)]
}

// port is the number of the port of that name, the first one's if there is no name; 0:
// there is none.
func (s *slice) port(name string) int {
	for _, p := range s.Ports {
		if name == "" || p.Name == name {
			return p.Port
		}
	}
	return 0
}

// client asks the API server.
type client struct {
	http  http.Client
	url   string
	token string // the file
	query url.Values
	port  string
}

// connect reads how the API server is reached.
func (s *Service) connect() (*client, error) {
	folder := cmp.Or(s.Account, account)
	base := s.API
	if base == "" {
		host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
		if host == "" || port == "" {
			return nil, errors.New("KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set: this is no pod, or it has no service account")
		}
		base = "https://" + net.JoinHostPort(host, port)
	}
	namespace := s.Namespace
	if namespace == "" {
		text, err := os.ReadFile(filepath.Join(folder, "namespace"))
		if err != nil {
			return nil, fmt.Errorf("reading the pod's namespace: %w", err)
		}
		namespace = strings.TrimSpace(string(text))
	}
	pem, err := os.ReadFile(filepath.Join(folder, "ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("reading the cluster's certificate authority: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s has no certificate", filepath.Join(folder, "ca.crt"))
	}
	return &client{
		http: http.Client{
			Transport:     &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true, ResponseHeaderTimeout: listTime},
			CheckRedirect: func(*http.Request, []*http.Request) error { return errors.New("the API server redirects") },
		},
		url:   strings.TrimSuffix(base, "/") + "/apis/discovery.k8s.io/v1/namespaces/" + url.PathEscape(namespace) + "/endpointslices",
		token: filepath.Join(folder, "token"),
		query: url.Values{"labelSelector": {"kubernetes.io/service-name=" + s.Name}},
		port:  s.Port,
	}, nil
}

// get asks for slices. The token is read each time: Kubernetes changes it.
func (c *client) get(ctx context.Context, more url.Values) (io.ReadCloser, error) {
	token, err := os.ReadFile(c.token)
	if err != nil {
		return nil, fmt.Errorf("reading the service account's token: %w", err)
	}
	query := url.Values{}
	for _, values := range []url.Values{c.query, more} {
		for name, v := range values {
			query[name] = v
		}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+"?"+query.Encode(), nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/json")
	r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	res, err := c.http.Do(r)
	if err != nil {
		return nil, err
	}
	switch res.StatusCode {
	case http.StatusOK:
		return res.Body, nil
	case http.StatusGone:
		err = errGone
	case http.StatusForbidden:
		err = errors.New("the API server answered 403: the service account may not list and watch endpointslices")
	default:
		err = fmt.Errorf("the API server answered %s", res.Status)
	}
	res.Body.Close()
	return nil, err
}
