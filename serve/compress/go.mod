module github.com/tarehq/tare/serve/compress

go 1.26.0

require (
	github.com/andybalholm/brotli v1.2.8
	github.com/klauspost/compress v1.20.3
	github.com/tarehq/tare/serve v0.1.0
)

replace github.com/tarehq/tare/serve => ../
