package kube_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tarehq/tare/serve/proxy"
	"github.com/tarehq/tare/serve/proxy/discover/kube"
)

// cluster is an API server as Kubernetes answers (API reference, EndpointSlice v1), with
// what the test tells it.
type cluster struct {
	t     *testing.T
	mu    sync.Mutex
	token string
	items string   // of the list
	lists int      // how many were asked for
	feeds []string // what the watches were asked to go on from
	feed  chan string
}

func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	token, items := c.token, c.items
	c.mu.Unlock()
	switch {
	case r.Header.Get("Authorization") != "Bearer "+token:
		http.Error(w, `{"kind": "Status", "code": 401}`, http.StatusUnauthorized)
		return
	case r.URL.Path != "/apis/discovery.k8s.io/v1/namespaces/store/endpointslices":
		http.Error(w, `{"kind": "Status", "code": 403}`, http.StatusForbidden)
		return
	case r.FormValue("labelSelector") != "kubernetes.io/service-name=shop":
		c.t.Errorf("asked for %s", r.URL)
	}
	if r.FormValue("watch") == "" {
		c.mu.Lock()
		c.lists++
		c.mu.Unlock()
		fmt.Fprintf(w, `{"kind": "EndpointSliceList", "apiVersion": "discovery.k8s.io/v1", "metadata": {"resourceVersion": "100"}, "items": [%s]}`, items)
		return
	}
	c.mu.Lock()
	c.feeds = append(c.feeds, r.FormValue("resourceVersion"))
	c.mu.Unlock()
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush()
	for {
		select {
		case text := <-c.feed:
			if text == "" {
				return
			}
			fmt.Fprintln(w, text)
			_ = http.NewResponseController(w).Flush()
		case <-r.Context().Done():
			return
		}
	}
}

func (c *cluster) set(token, items string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.token, c.items = token, items
}

// slice is an EndpointSlice with a port and endpoints.
func slice(name, version, endpoints string) string {
	return fmt.Sprintf(`{"metadata": {"name": %q, "namespace": "store", "resourceVersion": %q, "labels": {"kubernetes.io/service-name": "shop"}},
		"addressType": "IPv4", "ports": [{"name": "metrics", "port": 9090, "protocol": "TCP"}, {"name": "http", "port": 8080, "protocol": "TCP"}], "endpoints": [%s]}`, name, version, endpoints)
}

func pod(addr, zone, conditions string) string {
	return fmt.Sprintf(`{"addresses": [%q], "conditions": {%s}, "nodeName": "n", "targetRef": {"kind": "Pod", "name": "p"}, "zone": %q}`, addr, conditions, zone)
}

const (
	isReady   = `"ready": true, "serving": true, "terminating": false`
	isEnding  = `"ready": false, "serving": true, "terminating": true`
	isStarted = `"ready": false, "serving": false, "terminating": false`
)

// account writes a folder as a pod has it.
func account(t *testing.T, s *httptest.Server, token string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string][]byte{
		"token": []byte(token + "\n"), "namespace": []byte("store"),
		"ca.crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestWatch has servers be found, change with each event, come back after errors, and a
// watch go on from where it was.
func TestWatch(t *testing.T) {
	c := &cluster{t: t, feed: make(chan string), token: "first"}
	c.items = slice("shop-1", "90", pod("10.0.0.1", "a", isReady)+","+pod("10.0.0.2", "b", isReady)+","+pod("10.0.0.3", "b", isStarted))
	s := httptest.NewTLSServer(c)
	defer s.Close()
	dir := account(t, s, "first")
	service := kube.Service{Name: "shop", Port: "http", API: s.URL, Account: dir}
	ctx, cancel := context.WithCancel(t.Context())
	events := make(chan string, 100)
	ended := make(chan struct{})
	go func() {
		service.Watch(ctx, func(servers []proxy.Server, err error) {
			if err != nil {
				events <- "error: " + err.Error()
				return
			}
			var all []string
			for _, s := range servers {
				all = append(all, s.Zone+"/"+s.Address)
			}
			events <- strings.Join(all, " ")
		})
		close(ended)
	}()
	expect := func(want string) {
		t.Helper()
		select {
		case got := <-events:
			if got != want && !(strings.HasSuffix(want, "…") && strings.HasPrefix(got, strings.TrimSuffix(want, "…"))) {
				t.Fatalf("got %q, want %q", got, want)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("%q was not found", want)
		}
	}
	send := func(kind, object string) {
		c.feed <- fmt.Sprintf(`{"type": %q, "object": %s}`, kind, strings.ReplaceAll(object, "\n", ""))
	}

	expect("a/10.0.0.1:8080 b/10.0.0.2:8080")
	send("ADDED", slice("shop-2", "101", pod("10.0.0.4", "a", "")))
	expect("a/10.0.0.1:8080 b/10.0.0.2:8080 a/10.0.0.4:8080")
	send("BOOKMARK", `{"kind": "EndpointSlice", "metadata": {"resourceVersion": "150"}}`)
	send("DELETED", slice("shop-2", "151", ""))
	expect("a/10.0.0.1:8080 b/10.0.0.2:8080")
	send("MODIFIED", slice("shop-1", "152", pod("10.0.0.1", "a", isEnding)+","+pod("10.0.0.2", "b", isStarted)))
	expect("a/10.0.0.1:8080") // it ends, and serves yet
	send("MODIFIED", slice("shop-1", "153", ""))
	expect("")
	c.feed <- "" // the watch ends, as it does after a while
	send("MODIFIED", slice("shop-1", "160", pod("10.0.0.5", "a", isReady)))
	expect("a/10.0.0.5:8080")
	c.mu.Lock()
	if c.lists != 1 || len(c.feeds) != 2 || c.feeds[0] != "100" || c.feeds[1] != "153" {
		t.Errorf("%d lists, watches from %q; want one list, and watches from 100 and 153", c.lists, c.feeds)
	}
	c.mu.Unlock()

	c.set("second", slice("shop-1", "170", pod("10.0.0.6", "", isReady)))
	send("ERROR", `{"kind": "Status", "code": 500, "message": "the disk is full"}`)
	expect("error: watching the endpoints of service shop: the API server ended the watch: 500 the disk is full")
	expect("error: watching the endpoints of service shop: the API server answered 401 Unauthorized")
	if err := os.WriteFile(filepath.Join(dir, "token"), []byte("second"), 0o600); err != nil {
		t.Fatal(err)
	}
	expect("/10.0.0.6:8080")
	cancel()
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Error("the watch does not end")
	}
}

// TestErrors says what is missing.
func TestErrors(t *testing.T) {
	c := &cluster{t: t, feed: make(chan string), token: "t"}
	s := httptest.NewTLSServer(c)
	defer s.Close()
	whole := account(t, s, "t")
	empty := t.TempDir()
	broken := account(t, s, "t")
	if err := os.WriteFile(filepath.Join(broken, "ca.crt"), []byte("none"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	for want, service := range map[string]kube.Service{
		"KUBERNETES_SERVICE_HOST":         {Name: "shop", Account: whole},
		"reading the pod's namespace":     {Name: "shop", Account: empty, API: s.URL},
		"certificate authority":           {Name: "shop", Account: empty, API: s.URL, Namespace: "store"},
		"has no certificate":              {Name: "shop", Account: broken, API: s.URL},
		"may not list and watch":          {Name: "shop", Account: whole, API: s.URL, Namespace: "other"},
		"certificate signed by unknown a": {Name: "shop", Account: account(t, unknown(t), "t"), API: s.URL},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		var got error
		service.Watch(ctx, func(_ []proxy.Server, err error) {
			got = err
			cancel()
		})
		if got == nil || !strings.Contains(got.Error(), want) {
			t.Errorf("got %v, want %q", got, want)
		}
		cancel()
	}
}

// unknown is a server with a certificate that is not the cluster's.
func unknown(t *testing.T) *httptest.Server {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}
