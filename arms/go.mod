module github.com/tarehq/tare/arms

go 1.26.0

require (
	github.com/tarehq/tare v0.0.0-00010101000000-000000000000
	github.com/tarehq/tare/serve v0.1.0
	github.com/tarehq/tare/serve/proxy/gateway v0.0.0-00010101000000-000000000000
	golang.org/x/sys v0.49.0
	pgregory.net/rapid v1.3.0
)

require (
	github.com/goccy/go-yaml v1.19.2 // indirect
	github.com/oschwald/maxminddb-golang/v2 v2.9.0 // indirect
	github.com/quic-go/qpack v0.6.0 // indirect
	github.com/quic-go/quic-go v0.65.0 // indirect
	golang.org/x/crypto v0.58.0 // indirect
	golang.org/x/exp v0.0.0-20261014143641-f0251eb4aa3e // indirect
	golang.org/x/net v0.62.0 // indirect
	golang.org/x/text v0.43.0 // indirect
)

replace (
	github.com/tarehq/tare => ..
	github.com/tarehq/tare/serve => ../serve
	github.com/tarehq/tare/serve/proxy/gateway => ../serve/proxy/gateway
)
