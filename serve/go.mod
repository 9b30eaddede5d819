module github.com/tarehq/tare/serve

go 1.26.0
