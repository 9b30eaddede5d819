//tare:module github.com/gin-gonic/gin

// Command json encodes and decodes a page of orders by one encoder or another, on
// gin, with the two middlewares of gin.Default or with none.
//
//	GET  /small, /large   a page of 1 KB, of 50 KB
//	POST /small, /large   such a page is decoded, and its orders are counted
package main

import (
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/gin-gonic/gin"

	"github.com/tarehq/tare/arms/arm"
	"github.com/tarehq/tare/arms/rivals/json/payload"
)

// How many orders make a page of 1 KB, and of 50 KB.
const (
	small = 4
	large = 229
)

func main() {
	encoder := flag.String("encoder", "std", "which `encoder` to use: "+encoders)
	chain := flag.String("chain", "none", "`middlewares` before the handler: none, or default for those of gin.Default")
	flag.Parse()
	h, err := handler(*encoder, *chain)
	if err != nil {
		fmt.Fprintf(os.Stderr, "json: %v\n", err)
		os.Exit(2)
	}
	arm.Main(arm.Options{Handler: h})
}

func handler(encoder, chain string) (http.Handler, error) {
	c, err := newCodec(encoder)
	if err != nil {
		return nil, err
	}
	gin.SetMode(gin.ReleaseMode)
	g := gin.New()
	switch chain {
	case "none":
	case "default":
		g.Use(gin.LoggerWithWriter(io.Discard), gin.Recovery())
	default:
		return nil, fmt.Errorf("chain %q: want none or default", chain)
	}
	for path, orders := range map[string]int{"/small": small, "/large": large} {
		page := payload.New(orders)
		g.GET(path, func(ctx *gin.Context) { c.answer(ctx, page) })
		g.POST(path, c.count)
	}
	return g, nil
}

const contentType = "application/json; charset=utf-8"

func (c codec) answer(ctx *gin.Context, page *payload.Page) {
	b, err := c.encode(page)
	if err != nil {
		ctx.String(http.StatusInternalServerError, "%v", err)
		return
	}
	ctx.Data(http.StatusOK, contentType, b)
}

func (c codec) count(ctx *gin.Context) {
	b, err := io.ReadAll(ctx.Request.Body)
	if err == nil {
		page := new(payload.Page)
		if err = c.decode(b, page); err == nil {
			ctx.Data(http.StatusOK, contentType, fmt.Appendf(nil, `{"orders":%d}`, len(page.Orders)))
			return
		}
	}
	ctx.String(http.StatusBadRequest, "%v", err)
}
