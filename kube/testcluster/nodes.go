package testcluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// insideVariable names the folder for the state of a cluster with nodes. It is set in the
// namespaces alone.
const insideVariable = "TARE_K8S_INSIDE"

// cniPlugins is where Debian has them.
const cniPlugins = "/usr/lib/cni"

// pauseImage keeps the network of pods.
const pauseImage = "testcluster.local/pause:1"

// checkNodes finds what nodes need.
func checkNodes(bin string) error {
	if os.Getuid() != 0 {
		return errors.New("nodes need root")
	}
	for _, program := range []string{"containerd", "ctr", "runc", "ip", "nsenter", "unshare", "mount", filepath.Join(cniPlugins, "bridge"), filepath.Join(bin, "kubelet")} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("nodes need a program: %w", err)
		}
	}
	return nil
}

// Main runs tests whose clusters have nodes, for TestMain. Where they can be had, it starts
// the test program again in namespaces of its own, and all that it started ends with it.
func Main(m *testing.M) {
	bin, err := find(programs[:]...)
	if err != nil || checkNodes(bin) != nil || os.Getenv(insideVariable) != "" {
		os.Exit(m.Run()) // Start skips, or this is inside
	}
	os.Exit(runInside())
}

func runInside() int {
	dir, err := os.MkdirTemp("", "testcluster-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	self, err := os.Executable()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	args := append([]string{"--net", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child", self}, os.Args[1:]...)
	cmd := exec.Command("unshare", args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), insideVariable+"="+dir)
	if err := cmd.Run(); err != nil {
		if cmd.ProcessState.ExitCode() <= 0 {
			fmt.Fprintln(os.Stderr, err)
		}
		return max(1, cmd.ProcessState.ExitCode())
	}
	return 0
}

// node is a network namespace with a kubelet. It is connected to the namespace of the test,
// which has the control plane and routes between nodes.
type node struct {
	name    string
	link    string // its end in the namespace of the test
	address string
	pods    string // the network of its pods, without the last number
	socket  string // of containerd
}

// mostNodes bounds those of a cluster: the next one's have numbers from there on.
const mostNodes = 10

// setUpNetwork connects namespaces for nodes. All nodes reach the control plane at an address
// of the test's namespace.
func (c *Cluster) setUpNetwork(nodes int) {
	c.t.Helper()
	c.host = fmt.Sprintf("10.88.0.%d", 1+c.number)
	var steps [][]string
	if c.number == 0 {
		steps = [][]string{
			{"mount", "--make-rprivate", "/"},
			{"mkdir", "-p", "/var/lib/cni"},
			{"mount", "-t", "tmpfs", "tmpfs", "/var/lib/cni"}, {"mount", "-t", "tmpfs", "tmpfs", "/var/log"}, {"mount", "-t", "tmpfs", "tmpfs", "/run"},
			{"mkdir", "-p", "/run/netns"},
			{"ip", "link", "set", "lo", "up"},
			{"sysctl", "-qw", "net.ipv4.ip_forward=1"},
		}
	}
	steps = append(steps, []string{"ip", "address", "add", c.host + "/32", "dev", "lo"})
	for i := c.number * mostNodes; i < c.number*mostNodes+nodes; i++ {
		n := &node{
			name: fmt.Sprintf("node-%d", i), link: fmt.Sprintf("test%d", i), address: fmt.Sprintf("10.90.%d.2", i),
			pods: fmt.Sprintf("10.89.%d", i), socket: fmt.Sprintf("/run/containerd-%d.sock", i),
		}
		c.nodes = append(c.nodes, n)
		gateway := fmt.Sprintf("10.90.%d.1", i)
		steps = append(steps, [][]string{
			{"ip", "netns", "add", n.name},
			{"ip", "link", "add", n.link, "type", "veth", "peer", "name", "out", "netns", n.name},
			{"ip", "address", "add", gateway + "/30", "dev", n.link},
			{"ip", "link", "set", n.link, "up"},
			{"ip", "route", "add", n.pods + ".0/24", "via", n.address},
			n.inside("ip", "link", "set", "lo", "up"),
			n.inside("ip", "address", "add", n.address+"/30", "dev", "out"),
			n.inside("ip", "link", "set", "out", "up"),
			n.inside("ip", "route", "add", "default", "via", gateway),
			n.inside("ip", "link", "add", "pods", "type", "bridge"),
			n.inside("ip", "address", "add", n.pods+".1/24", "dev", "pods"),
			n.inside("ip", "link", "set", "pods", "up"),
			n.inside("sysctl", "-qw", "net.ipv4.ip_forward=1"),
		}...)
	}
	for _, argv := range steps {
		if err := command(argv...); err != nil {
			c.t.Fatal(err)
		}
	}
}

// inside is a command in the node's network.
func (n *node) inside(argv ...string) []string {
	return append([]string{"nsenter", "--net=/run/netns/" + n.name}, argv...)
}

// Partition cuts a node off from the control plane and from other nodes, or connects it again.
func (c *Cluster) Partition(name string, apart bool) {
	c.t.Helper()
	for _, n := range c.nodes {
		if n.name != name {
			continue
		}
		steps := [][]string{{"ip", "link", "set", n.link, "down"}}
		if !apart {
			steps = [][]string{{"ip", "link", "set", n.link, "up"}, {"ip", "route", "replace", n.pods + ".0/24", "via", n.address}}
		}
		for _, argv := range steps {
			if err := command(argv...); err != nil {
				c.t.Fatal(err)
			}
		}
		return
	}
	c.t.Fatalf("there is no node %q", name)
}

// startDNS answers for names of the cluster at its address.
func (c *Cluster) startDNS() {
	c.t.Helper()
	conn, err := net.ListenPacket("udp", net.JoinHostPort(c.host, "53"))
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { conn.Close() })
	go zone{c.Client}.serve(c.t.Context(), conn)
}

// startNodes starts all nodes and waits until they are ready.
func (c *Cluster) startNodes(images []Image) {
	c.t.Helper()
	pause := c.path("pause")
	Build(c.t, ".", "github.com/tarehq/tare/kube/testcluster/testdata/pause", pause)
	images = append(slices.Clone(images), Image{Name: pauseImage, Files: map[string]string{"pause": pause}, Program: []string{"/pause"}})
	var archives []string
	for i, image := range images {
		to := c.path("image-" + strconv.Itoa(i) + ".tar")
		if err := image.write(to); err != nil {
			c.t.Fatal(err)
		}
		archives = append(archives, to)
	}
	config := c.Kubeconfig("", "default")
	for _, n := range c.nodes {
		c.startRuntime(n, archives)
		if err := os.WriteFile(c.path(n.name+".yaml"), []byte(n.kubelet(c.path(n.name+".pods"), c.host)), 0o600); err != nil {
			c.t.Fatal(err)
		}
		c.startAs(n.name+".kubelet", n.inside(filepath.Join(c.bin, "kubelet"), "--config", c.path(n.name+".yaml"), "--kubeconfig", config,
			"--root-dir", c.path(n.name+".kubelet"), "--hostname-override", n.name, "--node-ip", n.address)...)
	}
	c.Await("nodes", time.Minute, func(ctx context.Context) error {
		all := new(corev1.NodeList)
		if err := c.Client.List(ctx, all); err != nil {
			return err
		}
		ready := 0
		for _, n := range all.Items {
			for _, condition := range n.Status.Conditions {
				if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue && len(n.Spec.Taints) == 0 {
					ready++
				}
			}
		}
		if ready < len(c.nodes) {
			return fmt.Errorf("%d of %d are ready", ready, len(c.nodes))
		}
		return nil
	})
}

// startRuntime starts a node's containerd and has it import the images.
func (c *Cluster) startRuntime(n *node, archives []string) {
	c.t.Helper()
	cni := c.path(n.name + ".cni")
	if err := os.MkdirAll(cni, 0o755); err != nil {
		c.t.Fatal(err)
	}
	for path, text := range map[string]string{
		filepath.Join(cni, "10-pods.conflist"): n.network(c.path(n.name + ".addresses")), c.path(n.name + ".toml"): n.runtime(c.dir, cni),
	} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			c.t.Fatal(err)
		}
	}
	c.startAs(n.name+".containerd", n.inside("containerd", "-c", c.path(n.name+".toml"))...)
	c.Await("containerd", time.Minute, func(context.Context) error { return command("ctr", "-a", n.socket, "version") })
	for _, archive := range archives {
		if err := command("ctr", "-a", n.socket, "-n", "k8s.io", "images", "import", archive); err != nil {
			c.t.Fatal(err)
		}
	}
}

// network is the configuration of the pods' network.
func (n *node) network(state string) string {
	return fmt.Sprintf(`{"cniVersion": "0.4.0", "name": "pods", "plugins": [{
  "type": "bridge", "bridge": "pods", "isGateway": false, "ipMasq": false,
  "ipam": {"type": "host-local", "dataDir": %q,
    "ranges": [[{"subnet": "%s.0/24", "rangeStart": "%[2]s.50", "rangeEnd": "%[2]s.250", "gateway": "%[2]s.1"}]],
    "routes": [{"dst": "0.0.0.0/0"}]}}]}
`, state, n.pods)
}

// runtime is containerd's configuration.
func (n *node) runtime(dir, cni string) string {
	return fmt.Sprintf(`version = 2
root = %q
state = %q
[grpc]
  address = %q
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = %q
  disable_apparmor = true
  restrict_oom_score_adj = true
  stream_server_port = "0"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = %q
    conf_dir = %q
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
`, filepath.Join(dir, n.name+".containerd"), "/run/containerd-"+n.name, n.socket, pauseImage, cniPlugins, cni)
}

// kubelet is the kubelet's configuration: where logs of pods are, and who knows names.
func (n *node) kubelet(pods, names string) string {
	return fmt.Sprintf(`apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
failCgroupV1: false
failSwapOn: false
cgroupDriver: cgroupfs
cgroupsPerQOS: false
enforceNodeAllocatable: []
evictionHard: {memory.available: 50Mi, nodefs.available: 1%%, imagefs.available: 1%%}
imageGCHighThresholdPercent: 100
containerRuntimeEndpoint: unix://%s
podLogsDir: %s
resolvConf: ""
clusterDNS: [%s]
clusterDomain: %s
syncFrequency: 1s
nodeStatusUpdateFrequency: 1s
nodeLeaseDurationSeconds: 4
`, n.socket, pods, names, domain)
}
