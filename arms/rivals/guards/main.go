//tare:module github.com/gin-gonic/gin

// Command guards answers behind what guards a service on gin-gonic/gin: its own
// middlewares and the best-known ones for it, in release mode. Package plan of arms/weights
// says how they are set up, and what is answered.
//
// The limits count in a Redis that this command starts, but for limit-memory. Clients of
// the load may have any number of requests, since tare first asks as fast as it can; others
// have 100 a second, as was published. Those named tare are by serve/redislimit.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	ginjwt "github.com/appleboy/gin-jwt/v2"
	"github.com/gaissmai/bart"
	"github.com/gin-contrib/cors"
	"github.com/gin-contrib/gzip"
	"github.com/gin-contrib/requestid"
	"github.com/gin-contrib/secure"
	"github.com/gin-contrib/timeout"
	"github.com/gin-gonic/gin"
	"github.com/go-redis/redis_rate/v10"
	"github.com/golang-jwt/jwt/v5"
	"github.com/redis/go-redis/v9"
	sloggin "github.com/samber/slog-gin"
	"github.com/ulule/limiter/v3"
	limitergin "github.com/ulule/limiter/v3/drivers/middleware/gin"
	"github.com/ulule/limiter/v3/drivers/store/memory"
	limiterredis "github.com/ulule/limiter/v3/drivers/store/redis"
	ginprometheus "github.com/zsais/go-gin-prometheus"
	"go.opentelemetry.io/contrib/instrumentation/github.com/gin-gonic/gin/otelgin"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.uber.org/zap/zapcore"

	"github.com/tarehq/tare/arms/arm"
	"github.com/tarehq/tare/arms/rivals/internal/spans"
	"github.com/tarehq/tare/arms/weights/plan"
	"github.com/tarehq/tare/serve/middleware/ratelimit"
	"github.com/tarehq/tare/serve/redislimit"
)

func main() {
	layer := flag.String("layer", "none", "`what` stands before the handler: none, guards, or layers with commas between")
	flag.Parse()
	names, h, err := newService(*layer)
	if err != nil {
		fmt.Fprintf(os.Stderr, "guards: %v\n", err)
		os.Exit(2)
	}
	o := arm.Options{Handler: h}
	if slices.Contains(names, "deny") { // a gateway
		o.Facts = func() map[string]string { return refusals(h) }
	}
	arm.Main(o)
}

// guards are the layers that services on gin usually have, outermost first. The client's
// address is gin's own.
var guards = []string{"recover", "requestid", "log-async", "metrics", "secure", "limit-memory", "timeout", "jwt"}

// newService returns the layers' names, and the service behind them.
func newService(layer string) ([]string, http.Handler, error) {
	names, err := plan.Names(layer, guards, makers)
	if err != nil {
		return nil, nil, err
	}
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	if err := engine.SetTrustedProxies(plan.Proxies()); err != nil {
		return nil, nil, err
	}
	for _, name := range names {
		f, err := makers[name]()
		if err != nil {
			return nil, nil, fmt.Errorf("making layer %s: %w", name, err)
		}
		engine.Use(f)
	}
	answer := plan.NewAnswer()
	engine.GET("/orders/:id", func(c *gin.Context) { answer.Write(c.Writer) })
	return names, engine, nil
}

// makers make each layer, as its authors' documentation shows it.
var makers = map[string]func() (gin.HandlerFunc, error){
	"recover":   func() (gin.HandlerFunc, error) { return gin.Recovery(), nil },
	"requestid": func() (gin.HandlerFunc, error) { return requestid.New(), nil },
	"clientaddr": func() (gin.HandlerFunc, error) {
		return func(c *gin.Context) { c.Set("address", c.ClientIP()) }, nil
	},
	"accesslog": func() (gin.HandlerFunc, error) { return gin.LoggerWithWriter(plan.Log()), nil },
	"accesslog-slog": func() (gin.HandlerFunc, error) {
		return sloggin.New(slog.New(slog.NewJSONHandler(plan.Log(), nil))), nil
	},
	"basicauth": withPassword,
	"compress":  func() (gin.HandlerFunc, error) { return gzip.Gzip(gzip.DefaultCompression), nil },
	"log":       func() (gin.HandlerFunc, error) { return gin.LoggerWithWriter(plan.File()), nil },
	"log-async": func() (gin.HandlerFunc, error) { // as much waits in memory, and as long, as by accesslog
		return gin.LoggerWithWriter(&zapcore.BufferedWriteSyncer{WS: plan.File(), Size: 256 << 10, FlushInterval: time.Second}), nil
	},
	"log-fsync": func() (gin.HandlerFunc, error) { return gin.LoggerWithWriter(synced{plan.File()}), nil },
	"metrics": func() (gin.HandlerFunc, error) {
		return ginprometheus.NewPrometheus("gin").HandlerFunc(), nil
	},
	"secure": func() (gin.HandlerFunc, error) {
		return secure.New(secure.Config{FrameDeny: true, ContentTypeNosniff: true, ReferrerPolicy: "no-referrer",
			ContentSecurityPolicy: "default-src 'none'"}), nil
	},
	"deny":             denying,
	"limit":            limitingInRedis,
	"limit-rate":       limitingByRedisRate,
	"limit-tare":       func() (gin.HandlerFunc, error) { return limitingByTare(1) },
	"limit-tare-batch": func() (gin.HandlerFunc, error) { return limitingByTare(publishedRate / 2) },
	"limit-memory":     func() (gin.HandlerFunc, error) { return limiting(memory.NewStore(), plan.Rate), nil },
	"cors": func() (gin.HandlerFunc, error) {
		return cors.New(cors.Config{AllowOrigins: []string{plan.Origin}, AllowMethods: []string{"PUT"}, AllowCredentials: true}), nil
	},
	"timeout": func() (gin.HandlerFunc, error) { return endInTime, nil },
	"timeout-contrib": func() (gin.HandlerFunc, error) {
		return timeout.New(timeout.WithTimeout(plan.Timeout)), nil
	},
	"tracing":         func() (gin.HandlerFunc, error) { return tracing(sdktrace.NeverSample()), nil },
	"tracing-sampled": func() (gin.HandlerFunc, error) { return tracing(sdktrace.AlwaysSample()), nil },
	"jwt":             func() (gin.HandlerFunc, error) { return verify, nil },
	"jwt-contrib": func() (gin.HandlerFunc, error) {
		verifier, err := ginjwt.New(&ginjwt.GinJWTMiddleware{Key: plan.Secret})
		if err != nil {
			return nil, err
		}
		return verifier.MiddlewareFunc(), nil
	},
}

// publishedRate is how many requests in a second a client may make that is no client of
// the load. Those have addresses that begin with loadClients.
const (
	publishedRate = 100
	loadClients   = "203.0.113."
)

// byClient hands clients of the load to one limit, and others to another.
func byClient(load, others gin.HandlerFunc) gin.HandlerFunc {
	return func(c *gin.Context) {
		if strings.HasPrefix(c.GetHeader("X-Forwarded-For"), loadClients) {
			load(c)
		} else {
			others(c)
		}
	}
}

// synced has each line on the disk before its request ends.
type synced struct{ *os.File }

func (s synced) Write(line []byte) (int, error) {
	n, err := s.File.Write(line)
	if err == nil {
		err = s.Sync()
	}
	return n, err
}

func denying() (gin.HandlerFunc, error) {
	denied := new(bart.Lite)
	for _, p := range plan.Denied() {
		denied.Insert(p)
	}
	return func(c *gin.Context) {
		if a, err := netip.ParseAddr(c.ClientIP()); err != nil || denied.Contains(a) {
			c.AbortWithStatus(http.StatusForbidden)
		}
	}, nil
}

// withPassword has the user's password in place of the study's token.
func withPassword() (gin.HandlerFunc, error) {
	check := gin.BasicAuth(gin.Accounts{plan.User: plan.Password})
	asked := &http.Request{Header: http.Header{}}
	asked.SetBasicAuth(plan.User, plan.Password)
	field := asked.Header["Authorization"]
	return func(c *gin.Context) {
		c.Request.Header["Authorization"] = field
		check(c)
	}, nil
}

func limiting(store limiter.Store, rate int64) gin.HandlerFunc {
	return limitergin.NewMiddleware(limiter.New(store, limiter.Rate{Period: time.Second, Limit: rate}))
}

func limitingInRedis() (gin.HandlerFunc, error) {
	addr, err := startRedis()
	if err != nil {
		return nil, err
	}
	store, err := limiterredis.NewStore(redis.NewClient(&redis.Options{Addr: addr}))
	if err != nil {
		return nil, err
	}
	return byClient(limiting(store, plan.Rate), limiting(store, publishedRate)), nil
}

// limitingByRedisRate has redis_rate count, as its documentation shows it.
func limitingByRedisRate() (gin.HandlerFunc, error) {
	addr, err := startRedis()
	if err != nil {
		return nil, err
	}
	l := redis_rate.NewLimiter(redis.NewClient(&redis.Options{Addr: addr}))
	limit := func(rate int) gin.HandlerFunc {
		return func(c *gin.Context) {
			res, err := l.Allow(c.Request.Context(), c.ClientIP(), redis_rate.PerSecond(rate))
			switch {
			case err != nil:
				c.AbortWithStatus(http.StatusInternalServerError)
			case res.Allowed == 0:
				c.AbortWithStatus(http.StatusTooManyRequests)
			}
		}
	}
	return byClient(limit(mostByTare), limit(publishedRate)), nil
}

// limitingByTare has serve/redislimit count, which asks Redis once for so many requests.
func limitingByTare(batch int) (gin.HandlerFunc, error) {
	addr, err := startRedis()
	if err != nil {
		return nil, err
	}
	load, err := newTareLimit(addr, mostByTare, batch)
	if err != nil {
		return nil, err
	}
	others, err := newTareLimit(addr, publishedRate, batch)
	if err != nil {
		return nil, err
	}
	return byClient(load, others), nil
}

// mostByTare is the highest rate that serve/redislimit knows.
const mostByTare = 1_000_000

func newTareLimit(addr string, rate, batch int) (gin.HandlerFunc, error) {
	o := redislimit.Options{Law: ratelimit.GCRA{Rate: rate}, Batch: batch, Key: func(r *http.Request) string { return r.Header.Get("X-Forwarded-For") }}
	o.Redis.InitAddress = []string{addr}
	l, err := redislimit.New(o)
	if err != nil {
		return nil, err
	}
	return func(c *gin.Context) {
		if !l.Take(c.Request).Allowed {
			c.AbortWithStatus(http.StatusTooManyRequests)
		}
	}, nil
}

// tracing is otelgin as its package shows it, without its metrics.
func tracing(s sdktrace.Sampler) gin.HandlerFunc {
	return otelgin.Middleware("orders", otelgin.WithTracerProvider(spans.Provider(s)), otelgin.WithMeterProvider(metricnoop.NewMeterProvider()),
		otelgin.WithPropagators(propagation.TraceContext{}))
}

// endInTime gives the request a deadline as chi's Timeout does: gin has no such layer of
// its own, and gin-contrib/timeout has each request run on a goroutine of its own.
func endInTime(c *gin.Context) {
	ctx, cancel := context.WithTimeout(c.Request.Context(), plan.Timeout)
	defer func() {
		cancel()
		if ctx.Err() == context.DeadlineExceeded {
			c.AbortWithStatus(http.StatusGatewayTimeout)
		}
	}()
	c.Request = c.Request.WithContext(ctx)
	c.Next()
}

// verify is what services write around golang-jwt.
func verify(c *gin.Context) {
	text, ok := strings.CutPrefix(c.GetHeader("Authorization"), "Bearer ")
	if !ok {
		c.AbortWithStatus(http.StatusUnauthorized)
		return
	}
	claims := new(jwt.RegisteredClaims)
	_, err := jwt.ParseWithClaims(text, claims, func(*jwt.Token) (any, error) { return plan.Secret, nil }, jwt.WithValidMethods([]string{"HS256"}))
	if err != nil {
		c.AbortWithStatus(http.StatusUnauthorized)
		return
	}
	c.Set("claims", claims)
}
