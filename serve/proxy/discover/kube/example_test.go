package kube_test

import (
	"context"
	"log"

	"github.com/tarehq/tare/serve/proxy"
	"github.com/tarehq/tare/serve/proxy/discover/kube"
)

func Example() {
	pool, err := proxy.NewPool(proxy.PoolOptions{Found: true, Zone: "eu-west-1a"})
	if err != nil {
		panic(err)
	}
	defer pool.Close()
	service := kube.Service{Name: "shop", Port: "http"}
	service.Watch(context.Background(), func(servers []proxy.Server, err error) {
		if err == nil {
			err = pool.Set(servers)
		}
		if err != nil {
			log.Print(err)
		}
	})
}
