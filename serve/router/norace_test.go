//go:build !race

package router_test

const raced = false
