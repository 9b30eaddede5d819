#!/bin/sh
# Builds the OpenTelemetry Collector that arm collector of study telemetry sends to:
#   sh otelcol.sh DIR    puts otelcol into DIR, a folder of PATH
# It needs Go and a module proxy, and takes a minute or some.
set -eu
to=${1:?which folder of PATH: sh otelcol.sh DIR}
version=v0.165.0 stable=v1.71.0 # of the collector's modules
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
cat >"$made/config.yaml" <<END
dist: {name: otelcol, output_path: "$made/source"}
receivers: [{gomod: go.opentelemetry.io/collector/receiver/otlpreceiver $version}]
exporters: [{gomod: go.opentelemetry.io/collector/exporter/debugexporter $version}]
providers:
  - gomod: go.opentelemetry.io/collector/confmap/provider/envprovider $stable
  - gomod: go.opentelemetry.io/collector/confmap/provider/fileprovider $stable
END
GOWORK=off go run "go.opentelemetry.io/collector/cmd/builder@$version" --config "$made/config.yaml"
mkdir -p "$to"
mv "$made/source/otelcol" "$to/otelcol"
