package site_test

import (
	"fmt"

	"github.com/tarehq/tare/cost/bpf/probe/site"
)

// Behind a call, a jump is what the kernel emulates.
func ExampleAfter() {
	code := []byte{0x48, 0x85, 0xc0, 0x74, 0x20} // test %rax,%rax; je
	at, end := site.After(code)
	fmt.Println(at, end == site.Marked)
	// Output: 3 true
}
