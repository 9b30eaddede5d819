// Package testcluster runs Kubernetes for tests: its own programs, as real as they come, for
// the time of a test.
//
// A cluster without nodes is etcd, the API server, the controllers and the scheduler on free
// ports of this machine. It needs the programs alone. A bare one has neither controllers nor
// scheduler: what is written stays as it is. One with nodes also has containerd and a
// kubelet for each node, in network, mount and process namespaces of their own, which end
// with the test. It needs root, Linux, and what Debian calls containerd, runc,
// containernetworking-plugins, iproute2 and util-linux. Tests say so where something is
// missing, and are skipped.
package testcluster

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

// Variable names the folder whose folder bin has the programs of Kubernetes. Without it, the
// folder tare/k8s in the user's cache is looked at.
const Variable = "TARE_K8S"

// programs are those of the control plane.
var programs = [...]string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}

// Options say what a cluster has.
type Options struct {
	Bare   bool    // etcd and the API server alone
	Nodes  int     // 0 to 9
	Images []Image // that the nodes have

	Beside *Cluster // another cluster with nodes, that stays; nil: this is the first that has some
}

// Cluster is a cluster that runs. Its methods are for one goroutine.
type Cluster struct {
	Config *rest.Config // of an administrator
	Client client.Client

	t       testing.TB
	number  int    // of those with nodes, from 0 on
	bin     string // folder of programs
	dir     string // for state and logs
	host    string // address that nodes reach the API server at
	port    string
	store   string // URL of etcd
	server  *exec.Cmd
	running []*exec.Cmd
	nodes   []*node
}

// find is the folder of programs.
func find(names ...string) (string, error) {
	root := os.Getenv(Variable)
	if root == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return "", err
		}
		root = filepath.Join(cache, "tare", "k8s")
	}
	bin := filepath.Join(root, "bin")
	for _, name := range names {
		if _, err := os.Stat(filepath.Join(bin, name)); err != nil {
			return "", fmt.Errorf("%s is not in %s (%s names another place)", name, bin, Variable)
		}
	}
	return bin, nil
}

// Need skips a test whose cluster cannot be had, before it does anything dear. It returns the
// folder of programs.
func Need(t testing.TB, o Options) string {
	t.Helper()
	names := programs[:]
	if o.Bare {
		names = names[:2]
	}
	bin, err := find(names...)
	if err == nil && o.Nodes > 0 {
		err = checkNodes(bin)
	}
	if err != nil {
		t.Skipf("SKIPPED: a Kubernetes cluster: %v", err)
	}
	return bin
}

// Start starts a cluster that ends with the test, or skips the test as Need does.
func Start(t testing.TB, o Options) *Cluster {
	t.Helper()
	bin := Need(t, o)
	ctrllog.SetLogger(logr.Discard())
	c := &Cluster{t: t, bin: bin, dir: t.TempDir(), host: "127.0.0.1"}
	if o.Nodes > 0 {
		if os.Getenv(insideVariable) == "" {
			t.Fatal("a test that has nodes needs testcluster.Main in its TestMain")
		}
		if o.Beside != nil {
			c.number = o.Beside.number + 1
		}
		c.dir = filepath.Join(os.Getenv(insideVariable), "cluster-"+strconv.Itoa(c.number))
		if err := os.MkdirAll(c.dir, 0o755); err != nil {
			t.Fatal(err)
		}
		c.setUpNetwork(o.Nodes)
	}
	t.Cleanup(c.stop)
	c.startStore()
	c.startServer()
	if !o.Bare {
		c.startControllers()
	}
	if o.Nodes > 0 {
		c.startDNS()
		c.startNodes(o.Images)
	}
	return c
}

// startStore starts etcd, and decides where the API server will be.
func (c *Cluster) startStore() {
	c.t.Helper()
	ports := c.freePorts(3)
	c.port = ports[2]
	peer := "http://127.0.0.1:" + ports[1]
	c.store = "http://127.0.0.1:" + ports[0]
	c.writeKeys()
	c.start("etcd", "--data-dir", c.path("etcd.data"), "--listen-client-urls", c.store, "--advertise-client-urls", c.store,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "default="+peer, "--unsafe-no-fsync")
}

// startServer starts the API server and waits until it answers.
func (c *Cluster) startServer() {
	c.t.Helper()
	bind := c.host
	if c.host != "127.0.0.1" {
		bind = "0.0.0.0"
	}
	c.server = c.start("kube-apiserver", "--etcd-servers="+c.store, "--secure-port="+c.port, "--bind-address="+bind, "--advertise-address="+c.host,
		"--cert-dir="+c.path("certs"), "--service-account-issuer=https://testcluster", "--service-account-key-file="+c.path("account.pub"),
		"--service-account-signing-key-file="+c.path("account.key"), "--token-auth-file="+c.path("tokens.csv"), "--authorization-mode=RBAC",
		"--disable-admission-plugins=ServiceAccount", "--service-cluster-ip-range=10.0.0.0/24", "--endpoint-reconciler-type=none",
		"--kubelet-preferred-address-types=InternalIP")
	c.Config = &rest.Config{
		Host: "https://" + net.JoinHostPort(c.host, c.port), BearerToken: token, TLSClientConfig: rest.TLSClientConfig{Insecure: true}, QPS: 200, Burst: 400,
	}
	c.Await("the API server", time.Minute, func(ctx context.Context) error {
		made, err := client.New(c.Config, client.Options{})
		if err != nil {
			return err
		}
		c.Client = made
		return c.ready(ctx)
	})
}

// Pause ends the API server, as a cluster does that nobody can reach any more.
func (c *Cluster) Pause() {
	_ = c.server.Process.Kill()
	_ = c.server.Wait() // it was killed
}

// Resume starts the API server again, at the same address and with the same store.
func (c *Cluster) Resume() { c.startServer() }

// startControllers starts what acts on what is written.
func (c *Cluster) startControllers() {
	c.t.Helper()
	config := c.Kubeconfig("", "default")
	const qps, burst = "--kube-api-qps=500", "--kube-api-burst=1000" // else a thousand pods take a minute
	c.start("kube-controller-manager", "--kubeconfig", config, qps, burst, "--controllers=*,-cloud-node-lifecycle-controller", "--leader-elect=false",
		"--node-monitor-period=1s", "--node-monitor-grace-period=6s", "--service-account-private-key-file="+c.path("account.key"), "--secure-port=0",
		"--root-ca-file="+c.path("certs/apiserver.crt")) // which pods find as kube-root-ca.crt
	c.start("kube-scheduler", "--kubeconfig", config, qps, burst, "--leader-elect=false", "--secure-port=0")
}

// ready asks the API server whether it is.
func (c *Cluster) ready(ctx context.Context) error {
	httpClient, err := rest.HTTPClientFor(c.Config)
	if err != nil {
		return err
	}
	res, err := httpClient.Get(c.Config.Host + "/readyz")
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != 200 {
		return fmt.Errorf("got status %s", res.Status)
	}
	return ctx.Err()
}

// token is the administrator's.
const token = "testcluster-administrator"

// writeKeys writes what signs accounts, and the administrator's token.
func (c *Cluster) writeKeys() {
	c.t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		c.t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		c.t.Fatal(err)
	}
	for name, content := range map[string][]byte{
		"account.key": pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}),
		"account.pub": pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}),
		"tokens.csv":  []byte(token + ",administrator,administrator,system:masters\n"),
	} {
		if err := os.WriteFile(c.path(name), content, 0o600); err != nil {
			c.t.Fatal(err)
		}
	}
}

// As is the configuration of a user, who has the rights that tests give.
func (c *Cluster) As(user string) *rest.Config {
	config := rest.CopyConfig(c.Config)
	config.Impersonate.UserName = user
	return config
}

// Kubeconfig writes a file for a user, "" for the administrator, and returns its path.
func (c *Cluster) Kubeconfig(user, namespace string) string {
	c.t.Helper()
	path := c.path("kubeconfig-" + user + "-" + namespace)
	err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:  map[string]*clientcmdapi.Cluster{"test": {Server: c.Config.Host, InsecureSkipTLSVerify: true}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"test": {Token: token, Impersonate: user}},
		Contexts:  map[string]*clientcmdapi.Context{"test": {Cluster: "test", AuthInfo: "test", Namespace: namespace}}, CurrentContext: "test",
	}, path)
	if err != nil {
		c.t.Fatal(err)
	}
	return path
}

// Await waits until something is true, and ends the test if it is not within a time.
func (c *Cluster) Await(what string, within time.Duration, check func(context.Context) error) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), within)
	defer cancel()
	for {
		err := check(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			c.t.Fatalf("waiting for %s: not within %v: %v", what, within, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (c *Cluster) path(name string) string { return filepath.Join(c.dir, name) }

// start starts one of the programs, with a log of that name.
func (c *Cluster) start(program string, args ...string) *exec.Cmd {
	c.t.Helper()
	return c.startAs(program, append([]string{filepath.Join(c.bin, program)}, args...)...)
}

func (c *Cluster) startAs(name string, argv ...string) *exec.Cmd {
	c.t.Helper()
	log, err := os.Create(c.path(name + ".log"))
	if err != nil {
		c.t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		c.t.Fatalf("starting %s: %v", name, err)
	}
	c.running = append(c.running, cmd)
	c.t.Cleanup(func() {
		if c.t.Failed() {
			c.t.Logf("%s said at last:\n%s", name, lastLines(c.path(name+".log"), 8))
		}
	})
	return cmd
}

// stop ends the programs, the last one first: the API server does not end without etcd. Pods
// end before, as their control groups would stay.
func (c *Cluster) stop() {
	if len(c.nodes) > 0 && c.Client != nil {
		c.removePods()
	}
	for i := len(c.running) - 1; i >= 0; i-- {
		cmd := c.running[i]
		_ = cmd.Process.Signal(os.Interrupt)
		late := time.AfterFunc(3*time.Second, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait() // it was told to end
		late.Stop()
	}
}

// removePods deletes all pods and waits a while for their end.
func (c *Cluster) removePods() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for ctx.Err() == nil {
		pods := new(corev1.PodList)
		if err := c.Client.List(ctx, pods); err == nil && len(pods.Items) == 0 {
			return
		}
		for i := range pods.Items {
			_ = c.Client.Delete(ctx, &pods.Items[i], client.GracePeriodSeconds(1)) // asked again if it is still there
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// freePorts are ports of this machine that nobody listens on.
func (c *Cluster) freePorts(n int) []string {
	c.t.Helper()
	var ports []string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			c.t.Fatal(err)
		}
		defer l.Close()
		_, port, err := net.SplitHostPort(l.Addr().String())
		if err != nil {
			c.t.Fatal(err)
		}
		ports = append(ports, port)
	}
	return ports
}

func lastLines(path string, n int) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// command runs a program of this machine and returns what it said if it failed.
func command(argv ...string) error {
	out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, out)
	}
	return nil
}
