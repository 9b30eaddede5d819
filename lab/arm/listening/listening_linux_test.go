package listening_test

import (
	"fmt"
	"net"
	"os"
	"slices"

	"github.com/tarehq/tare/lab/arm/listening"
)

func ExampleAddresses() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer l.Close()
	all, err := listening.Addresses(os.Getpid())
	fmt.Println(slices.Contains(all, l.Addr().String()), err)
	// Output: true <nil>
}
