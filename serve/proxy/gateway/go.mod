module github.com/tarehq/tare/serve/proxy/gateway

go 1.26.0

require (
	github.com/oschwald/maxminddb-golang/v2 v2.9.0
	github.com/tarehq/tare/serve v0.1.0
)

require golang.org/x/sys v0.49.0 // indirect

replace github.com/tarehq/tare/serve => ../../
