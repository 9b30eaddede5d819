package tunnel_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"

	"github.com/tarehq/tare/serve"
	"github.com/tarehq/tare/serve/proxy/tunnel"
)

func Example() {
	database, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	defer database.Close()
	go func() {
		if c, err := database.Accept(); err == nil {
			fmt.Fprint(c, "ready\n")
			c.Close()
		}
	}()
	s := &serve.Server{Handler: &tunnel.Connect{To: []string{database.Addr().String()}, Next: http.NotFoundHandler()}}
	s.Lenient.Connect = true
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go func() { _ = s.Serve(l) }()
	defer s.Close()
	for _, to := range []string{"127.0.0.1:1", database.Addr().String()} {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", to, to)
		in := bufio.NewReader(c)
		res, err := http.ReadResponse(in, &http.Request{Method: http.MethodConnect})
		if err != nil {
			panic(err)
		}
		fmt.Println(res.StatusCode)
		if res.StatusCode == http.StatusOK {
			text, _ := io.ReadAll(in)
			fmt.Print(string(text))
		}
		c.Close()
	}
	// Output:
	// 403
	// 200
	// ready
}
