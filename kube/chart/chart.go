// Package chart holds the manifests that install the operator.
//
// The folder is a Helm chart. install.yaml is what the chart makes with its own values beside
// the definitions in crds, and a test keeps it so.
package chart

import (
	"cmp"
	_ "embed"
	"strings"
)

var (
	//go:embed crds/loadtests.yaml
	loadTests string
	//go:embed crds/studies.yaml
	studies string
	//go:embed install.yaml
	install string
)

// image is that of the chart's own values.
const image = "ghcr.io/tarehq/tare:latest"

// Manifests are the definitions of the resources and the operator, in the namespace
// tare-system, as one stream of YAML. Operator and runs have the image; "" is the latest release's.
func Manifests(of string) string {
	return loadTests + "---\n" + studies + "---\n" + strings.ReplaceAll(install, image, cmp.Or(of, image))
}
