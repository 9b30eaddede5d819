// Package chart holds the manifests that install the operator.
//
// The folder is a Helm chart. install.yaml is what the chart makes with its own values, and a
// test keeps it so.
package chart

import _ "embed"

//go:embed install.yaml
var install string

// Manifests are the definitions of the resources and the operator, in the namespace
// tare-system, as one stream of YAML.
func Manifests() string { return install }
