#!/bin/sh
# Makes all of this package that is generated: types, gRPC's service and client, Connect's in
# Go and TypeScript, the gateway's mapping and the OpenAPI document. google/api, of which the
# mapping's annotations are, comes from the last module that has it. The client in TypeScript
# needs npx of Node.js, all else Go alone.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
google=$(go mod download -json github.com/grpc-ecosystem/grpc-gateway@v1.16.0 | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
mkdir -p google/api
cp "$google"/third_party/googleapis/google/api/annotations.proto "$google"/third_party/googleapis/google/api/http.proto google/api/
cp "$here"/orders.proto "$here"/buf.gen.yaml .
go run github.com/bufbuild/buf/cmd/buf@v1.75.0 generate --path orders.proto --output "$here"
