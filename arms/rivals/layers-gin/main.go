//tare:module github.com/gin-gonic/gin

// Command layers-gin answers behind layers of gin-gonic/gin, as package plan
// says, in release mode in the same http.Server as the control: values by the
// name in gin's context, status by the writer that all share.
package main

import (
	"flag"

	"github.com/gin-gonic/gin"

	"github.com/tarehq/tare/arms/arm"
	"github.com/tarehq/tare/arms/layers/plan"
)

func main() {
	depth := plan.Flag()
	flag.Parse()
	users, names := plan.Users(*depth), keys(*depth)
	answer := plan.NewAnswer()
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	engine.GET(plan.Noop, around(*depth, noop, func(c *gin.Context) { answer.Write(c.Writer) })...)
	engine.GET(plan.Record, around(*depth, record, func(c *gin.Context) { answer.Write(c.Writer) })...)
	engine.GET(plan.Value, around(*depth, func(i int) gin.HandlerFunc { return value(names[i], users[i]) }, func(c *gin.Context) {
		if last := len(users) - 1; last >= 0 {
			u, _ := c.Get(names[0])
			plan.Found(u.(*plan.User), users[0])
			u, _ = c.Get(names[last])
			plan.Found(u.(*plan.User), users[last])
		}
		answer.Write(c.Writer)
	})...)
	arm.Main(arm.Options{Handler: engine})
}

func around(n plan.Depth, layer func(i int) gin.HandlerFunc, h gin.HandlerFunc) []gin.HandlerFunc {
	all := make([]gin.HandlerFunc, 0, n+1)
	for i := range int(n) {
		all = append(all, layer(i))
	}
	return append(all, h)
}

func noop(int) gin.HandlerFunc { return func(c *gin.Context) { c.Next() } }

// keys are the names as gin wants them, made once as those of a service are, which
// are constants: gin would have the others moved to the heap by each call.
func keys(n plan.Depth) []any {
	all := make([]any, n)
	for i, name := range plan.Names(n) {
		all[i] = name
	}
	return all
}

func value(name any, u *plan.User) gin.HandlerFunc {
	return func(c *gin.Context) {
		c.Set(name, u)
		c.Next()
	}
}

func record(int) gin.HandlerFunc {
	return func(c *gin.Context) {
		c.Next()
		plan.Saw(c.Writer.Status())
	}
}
