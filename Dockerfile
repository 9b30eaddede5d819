# tare and its companions alone, from scratch. It is built of programs that are there already, in folders by
# platform such as linux/amd64. goreleaser makes them so, and this does, which needs no daemon:
#   GOOS=linux GOARCH=amd64 CGO_ENABLED=0 go build -trimpath -o linux/amd64/tare ./cmd/tare
#   GOOS=linux GOARCH=amd64 CGO_ENABLED=0 GOWORK=off go -C kube build -trimpath -o ../linux/amd64/tare-kube ./cmd/tare-kube
#   GOOS=linux GOARCH=amd64 CGO_ENABLED=0 go -C serve/proxy/gateway build -trimpath -o "$PWD/linux/amd64/tare-proxy" .
#   buildah build --platform linux/amd64 --timestamp 0 -t tare .
FROM scratch
ARG TARGETPLATFORM
COPY $TARGETPLATFORM/tare* /usr/bin/
WORKDIR /work
USER 65534:65534
ENTRYPOINT ["/usr/bin/tare"]
