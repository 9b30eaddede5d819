module github.com/tarehq/tare/kube

go 1.26.0

require (
	github.com/go-logr/logr v1.4.3
	github.com/tarehq/tare v0.0.0-00010101000000-000000000000
	golang.org/x/net v0.62.0
	k8s.io/api v0.36.3
	k8s.io/apimachinery v0.36.3
	k8s.io/client-go v0.36.3
	k8s.io/klog/v2 v2.140.0
	sigs.k8s.io/controller-runtime v0.24.1
	sigs.k8s.io/yaml v1.6.0
)

replace github.com/tarehq/tare => ../
