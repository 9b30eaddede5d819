package pods_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tarehq/tare/cost/watch/pods"
)

const (
	uid   = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
	id    = "0411a2a82311fbc65b137ca550d5f7e6b6863bc734759be2f515b0b67062d49a"
	other = "1411a2a82311fbc65b137ca550d5f7e6b6863bc734759be2f515b0b67062d49b"
)

func groups(uid, id string) string { return "0::/kubepods/burstable/pod" + uid + "/" + id + "\n" }

// write makes files and folders in a folder of logs.
func write(t *testing.T, logs string, paths ...string) {
	t.Helper()
	for _, path := range paths {
		path = filepath.Join(logs, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestOf names containers as a kubelet leaves them on a node, and one that comes later.
func TestOf(t *testing.T) {
	logs := t.TempDir()
	if _, err := pods.Open(logs); err == nil {
		t.Error("a machine without a kubelet: no error")
	}
	write(t, logs,
		"pods/shop_web-7d4b9c6f5-x2x4z_"+uid+"/server/0.log", "pods/shop_web-7d4b9c6f5-x2x4z_"+uid+"/side-car/0.log",
		"containers/web-7d4b9c6f5-x2x4z_shop_side-car-"+id+".log", "containers/nonsense.log",
		"pods/db_pg-0_7ba7b810-9dad-11d1-80b4-00c04fd430c8/postgres/0.log",
	)
	n, err := pods.Open(logs)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ groups, service, full string }{
		{groups(uid, id), "shop/web/side-car", "shop/web-7d4b9c6f5-x2x4z"},
		{"0::/../" + id + "\n", "shop/web/side-car", "shop/web-7d4b9c6f5-x2x4z"},
		{groups(uid, other), "shop/web", "shop/web-7d4b9c6f5-x2x4z"}, // which of two is not known
		{groups("7ba7b810-9dad-11d1-80b4-00c04fd430c8", other), "db/pg/postgres", "db/pg-0"},
		{groups("8ba7b810-9dad-11d1-80b4-00c04fd430c8", other), "", "8ba7b810-9dad-11d1-80b4-00c04fd430c8"},
	} {
		c, in := n.Of(tt.groups)
		if c.Service() != tt.service || c.Full() != tt.full || !in {
			t.Errorf("%s: got %q of %q, %t, want %q of %q", tt.groups, c.Service(), c.Full(), in, tt.service, tt.full)
		}
	}
	for _, list := range []string{"", "0::/system.slice/docker-" + other + ".scope\n", "0::/init.scope\n"} {
		if c, in := n.Of(list); in {
			t.Errorf("%q: got %+v, want no pod", list, c)
		}
	}
	write(t, logs, "containers/late-0_shop_late-"+other+".log")
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if c, _ := n.Of(groups("9ba7b810-9dad-11d1-80b4-00c04fd430c8", other)); c.Service() == "shop/late/late" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("a container that came later has no name")
		}
	}
}

func TestWorkload(t *testing.T) {
	for pod, want := range map[string]string{
		"web-7d4b9c6f5-x2x4z": "web", "web-v2-6bb5f78d-9kzqt": "web-v2", "agent-x2x4z": "agent", "pg-0": "pg", "pg-12": "pg",
		"report-29384210-x2x4z": "report", "job-3-x2x4z": "job", "kube-apiserver-node1": "kube-apiserver-node1",
		"nginx": "nginx", "web-stats": "web-stats", "-x2x4z": "-x2x4z", "-1": "-1",
	} {
		if got := pods.Workload(pod); got != want {
			t.Errorf("%s: got %s, want %s", pod, got, want)
		}
	}
}
