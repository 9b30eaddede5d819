package operator

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tarehq/tare/kube/api/v1alpha1"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// remotes keeps clients of other clusters, since each begins by asking what its API has. It
// is safe for concurrent use.
type remotes struct {
	scheme *runtime.Scheme

	mu   sync.Mutex
	open map[[sha256.Size]byte]cluster // by the kubeconfig's text
}

// cluster is a client, and what it was made by.
type cluster struct {
	client.Client
	config *rest.Config
}

// mostRemotes bounds the clients kept.
const mostRemotes = 100

// answerTime is how long a cluster may take to answer one request.
const answerTime = 8 * time.Second

// errNoKubeconfig is of a Secret that is not there: it may come yet, or is being replaced.
var errNoKubeconfig = errors.New("the cluster's kubeconfig is missing")

// connect returns a client of a run's cluster.
func (p *pass) connect(ctx context.Context, c *v1alpha1.ClusterRun) (cluster, error) {
	if c.KubeconfigSecret == nil {
		return p.direct, nil
	}
	var secret corev1.Secret
	name, key := c.KubeconfigSecret.Name, cmp.Or(c.KubeconfigSecret.Key, "kubeconfig")
	err := p.direct.Get(ctx, client.ObjectKey{Namespace: p.res.GetNamespace(), Name: name}, &secret)
	if apierrors.IsNotFound(err) {
		return cluster{}, fmt.Errorf("%w: there is no Secret %s", errNoKubeconfig, name)
	}
	if err != nil {
		return cluster{}, fmt.Errorf("reading the kubeconfig in Secret %s: %w", name, err)
	}
	text, ok := secret.Data[key]
	if !ok {
		return cluster{}, fmt.Errorf("%w: Secret %s has no key %q", errNoKubeconfig, name, key)
	}
	cl, err := p.remote.cluster(text)
	if err != nil {
		return cluster{}, fmt.Errorf("reading the kubeconfig in Secret %s: %w", name, err)
	}
	return cl, nil
}

// cluster is a client by a kubeconfig's text.
func (r *remotes) cluster(text []byte) (cluster, error) {
	id := sha256.Sum256(text)
	r.mu.Lock()
	defer r.mu.Unlock()
	if cl, ok := r.open[id]; ok {
		return cl, nil
	}
	config, err := readKubeconfig(text)
	if err != nil {
		return cluster{}, err
	}
	made, err := client.New(config, client.Options{Scheme: r.scheme})
	if err != nil {
		return cluster{}, err
	}
	cl := cluster{made, config}
	if len(r.open) >= mostRemotes {
		r.open = nil
	}
	if r.open == nil {
		r.open = map[[sha256.Size]byte]cluster{}
	}
	r.open[id] = cl
	return cl, nil
}

// readKubeconfig reads a kubeconfig that somebody else wrote. It may neither run a program
// nor read a file of the operator's.
func readKubeconfig(text []byte) (*rest.Config, error) {
	parsed, err := clientcmd.Load(text)
	if err != nil {
		return nil, err
	}
	for name, user := range parsed.AuthInfos {
		if what := outside(user); what != "" {
			return nil, fmt.Errorf("its user %q has %s, which the operator does not use: put a token or a certificate into it, as `kubectl config view --minify --flatten` does", name, what)
		}
	}
	for name, cluster := range parsed.Clusters {
		if cluster.CertificateAuthority != "" {
			return nil, fmt.Errorf("its cluster %q names a file, which the operator does not read: put the certificate into it, as `kubectl config view --minify --flatten` does", name)
		}
	}
	config, err := clientcmd.NewDefaultClientConfig(*parsed, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, err
	}
	config.Timeout, config.QPS, config.Burst = answerTime, 50, 100
	config.WarningHandler = rest.NoWarnings{}
	config.UserAgent = "tare-operator"
	return config, nil
}

// outside is what of a user's credentials is not in the kubeconfig itself.
func outside(user *clientcmdapi.AuthInfo) string {
	switch {
	case user.Exec != nil:
		return "exec"
	case user.AuthProvider != nil:
		return "auth-provider"
	case user.TokenFile != "":
		return "tokenFile"
	case user.ClientCertificate != "":
		return "client-certificate"
	case user.ClientKey != "":
		return "client-key"
	}
	return ""
}
