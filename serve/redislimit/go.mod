module github.com/tarehq/tare/serve/redislimit

go 1.26.0

require (
	github.com/redis/rueidis v1.0.79
	github.com/tarehq/tare/serve v0.1.0
)

require golang.org/x/sys v0.47.0 // indirect

replace github.com/tarehq/tare/serve => ../
