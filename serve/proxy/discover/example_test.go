package discover_test

import (
	"context"
	"fmt"

	"github.com/tarehq/tare/serve/proxy"
	"github.com/tarehq/tare/serve/proxy/discover"
)

func Example() {
	pool, err := proxy.NewPool(proxy.PoolOptions{Found: true})
	if err != nil {
		panic(err)
	}
	defer pool.Close()
	d := discover.DNS{Name: "127.0.0.1", Port: 8080} // most often a name
	ctx, cancel := context.WithCancel(context.Background())
	d.Watch(ctx, func(servers []proxy.Server, err error) {
		if err == nil {
			err = pool.Set(servers)
		}
		fmt.Println(pool.Status()[0].Address, err)
		cancel() // a service goes on
	})
	// Output: 127.0.0.1:8080 <nil>
}
