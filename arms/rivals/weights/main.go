//tare:module github.com/go-chi/chi/v5

// Command weights answers behind middlewares of others for net/http, one or several.
// Package plan says how they are set up. Compression and tracing of ours are here, too, since
// they are modules of their own.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/CAFxX/httpcompression"
	"github.com/VictoriaMetrics/metrics"
	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/gaissmai/bart"
	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/go-chi/httplog/v3"
	"github.com/go-chi/httprate"
	"github.com/go-chi/jwtauth/v5"
	"github.com/go-jose/go-jose/v4"
	josejwt "github.com/go-jose/go-jose/v4/jwt"
	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"
	"github.com/gorilla/handlers"
	"github.com/klauspost/compress/gzhttp"
	"github.com/lestrrat-go/jwx/v3/jwa"
	jwx "github.com/lestrrat-go/jwx/v3/jwt"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/realclientip/realclientip-go"
	"github.com/riandyrn/otelchi"
	"github.com/rs/cors"
	"github.com/rs/zerolog"
	"github.com/rs/zerolog/hlog"
	"github.com/sony/gobreaker/v2"
	"github.com/ulule/limiter/v3"
	limiterhttp "github.com/ulule/limiter/v3/drivers/middleware/stdlib"
	"github.com/ulule/limiter/v3/drivers/store/memory"
	unrolled "github.com/unrolled/secure"
	"github.com/yl2chen/cidranger"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go4.org/netipx"
	"golang.org/x/time/rate"

	"github.com/tarehq/tare/arms/arm"
	"github.com/tarehq/tare/arms/rivals/internal/spans"
	"github.com/tarehq/tare/arms/serve/engines"
	"github.com/tarehq/tare/arms/weights/plan"
	"github.com/tarehq/tare/serve/chain"
	"github.com/tarehq/tare/serve/compress"
	"github.com/tarehq/tare/serve/compress/decompress"
	"github.com/tarehq/tare/serve/tracing"
)

type mw = func(http.Handler) http.Handler

func main() {
	layer := flag.String("layer", "none", "`what` stands before the handler: none, guards, or layers with commas between")
	server := engines.Flag(engines.NetHTTP)
	flag.Parse()
	h, err := handler(*layer)
	if err != nil {
		fmt.Fprintf(os.Stderr, "weights: %v\n", err)
		os.Exit(2)
	}
	arm.Main(arm.Options{Handler: h, Serve: server.Run(h), Context: server.LoopContext()})
}

// guards are the layers that services on chi usually have, outermost first.
var guards = []string{"recovery-chi", "requestid-chi", "clientaddr-chi", "accesslog-httplog", "secure-unrolled", "limit-chi", "ratelimit-httprate", "timeout-chi", "jwt-golang"}

func handler(layer string) (http.Handler, error) {
	answer := plan.NewAnswer()
	var h http.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer.Write(w) })
	names, err := plan.Names(layer, guards, makers)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Backward(names) {
		h = makers[name]()(h)
	}
	return h, nil
}

// makers make each layer, as its authors' documentation shows it.
var makers = map[string]func() mw{
	"recovery-chi":     func() mw { return middleware.Recoverer },
	"recovery-gorilla": func() mw { return handlers.RecoveryHandler() },
	"requestid-chi":    func() mw { return middleware.RequestID },
	"requestid-uuid":   func() mw { return identifying },
	"requestid-hlog":   func() mw { return hlog.RequestIDHandler("id", "X-Request-Id") },
	"clientaddr-chi":   func() mw { return middleware.ClientIPFromXFF(plan.Proxies()...) },
	"clientaddr-gorilla": func() mw {
		return handlers.ProxyHeaders
	},
	"clientaddr-realclientip": addressing,
	"accesslog-chi": func() mw {
		return middleware.RequestLogger(&middleware.DefaultLogFormatter{Logger: log.New(plan.Log(), "", log.LstdFlags), NoColor: true})
	},
	"accesslog-httplog": func() mw { return httplogging(plan.Log()) },
	"accesslog-httplog-file": func() mw { // as much waits in memory, and as long, as by accesslog
		return httplogging(&zapcore.BufferedWriteSyncer{WS: plan.File(), Size: 256 << 10, FlushInterval: time.Second})
	},
	"accesslog-gorilla": func() mw {
		return func(next http.Handler) http.Handler { return handlers.CombinedLoggingHandler(plan.Log(), next) }
	},
	"accesslog-zerolog": zerologging,
	"accesslog-zap":     zapping,
	"secure-unrolled": func() mw {
		return unrolled.New(unrolled.Options{FrameDeny: true, ContentTypeNosniff: true, ReferrerPolicy: "no-referrer",
			ContentSecurityPolicy: "default-src 'none'", CrossOriginOpenerPolicy: "same-origin", CrossOriginResourcePolicy: "same-origin"}).Handler
	},
	"cors-rs": func() mw {
		return cors.New(cors.Options{AllowedOrigins: []string{plan.Origin}, AllowedMethods: []string{"GET", "PUT"}, AllowCredentials: true}).Handler
	},
	"limit-chi": func() mw { return middleware.ThrottleBacklog(plan.InFlight, plan.InFlight, time.Second) },
	"limit-nethttp": func() mw {
		return func(next http.Handler) http.Handler { return http.MaxBytesHandler(next, plan.Body) }
	},
	"ratelimit-httprate": func() mw {
		return httprate.LimitBy(plan.Rate, time.Second, func(r *http.Request) (string, error) {
			ip := middleware.GetClientIP(r.Context())
			if ip == "" { // alone: no middleware has found it
				ip = r.RemoteAddr
			}
			return httprate.CanonicalizeIP(ip), nil
		})
	},
	"ratelimit-ulule": func() mw {
		l := limiter.New(memory.NewStore(), limiter.Rate{Period: time.Second, Limit: plan.Rate})
		return limiterhttp.NewMiddleware(l).Handler
	},
	"ratelimit-xtime": limitingByXTime,
	"timeout-chi":     func() mw { return middleware.Timeout(plan.Timeout) },
	"timeout-nethttp": func() mw {
		return func(next http.Handler) http.Handler { return http.TimeoutHandler(next, plan.Timeout, "") }
	},
	"metrics-promhttp": func() mw { return counting(prometheus.HistogramOpts{Buckets: prometheus.DefBuckets}) },
	"metrics-promhttp-native": func() mw {
		return counting(prometheus.HistogramOpts{NativeHistogramBucketFactor: 1.1})
	},
	"metrics-victoria": measuring,
	"breaker-gobreaker": func() mw {
		return breaking(gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{Name: "handler", Interval: 10 * time.Second}).Execute)
	},
	"breaker-failsafe": func() mw { // which opens after as many failures as gobreaker
		return breaking(failsafe.With[struct{}](circuitbreaker.NewBuilder[struct{}]().WithFailureThreshold(6).Build()).Get)
	},
	"compress":     func() mw { return must(compress.New(compress.Options{})) },
	"compress-chi": func() mw { return middleware.Compress(5) },
	"compress-gzhttp": func() mw {
		return func(next http.Handler) http.Handler { return gzhttp.GzipHandler(next) }
	},
	"compress-httpcompression": func() mw { return must(httpcompression.DefaultAdapter()) },
	"decompress":               func() mw { return must(decompress.New(decompress.Options{})) },
	"ipfilter-bart":            filteringByBart,
	"ipfilter-cidranger":       filteringByCidranger,
	"ipfilter-netipx":          filteringByNetipx,
	"tracing":                  func() mw { return tracingByTare(0) },
	"tracing-sampled":          func() mw { return tracingByTare(1) },
	"tracing-otelhttp":         func() mw { return tracingByOtelhttp(sdktrace.NeverSample()) },
	"tracing-sampled-otelhttp": func() mw { return tracingByOtelhttp(sdktrace.AlwaysSample()) },
	"router-chi":               func() mw { return routing(func(chi.Router) {}) },
	"tracing-otelchi":          func() mw { return tracingByOtelchi(sdktrace.NeverSample()) },
	"tracing-sampled-otelchi":  func() mw { return tracingByOtelchi(sdktrace.AlwaysSample()) },
	"basicauth-chi": func() mw {
		check := middleware.BasicAuth("restricted", map[string]string{plan.User: plan.Password})
		return func(next http.Handler) http.Handler { return plan.WithPassword(check(next)) }
	},
	"jwt-jwtauth": func() mw {
		auth := jwtauth.New("HS256", plan.Secret, nil)
		return func(next http.Handler) http.Handler { return jwtauth.Verifier(auth)(jwtauth.Authenticator(auth)(next)) }
	},
	"jwt-golang": func() mw {
		return verifying(func(text string) error {
			_, err := jwt.ParseWithClaims(text, &jwt.RegisteredClaims{}, func(*jwt.Token) (any, error) { return plan.Secret, nil },
				jwt.WithValidMethods([]string{"HS256"}))
			return err
		})
	},
	"jwt-jose": func() mw {
		return verifying(func(text string) error {
			token, err := josejwt.ParseSigned(text, []jose.SignatureAlgorithm{jose.HS256})
			if err != nil {
				return err
			}
			var claims josejwt.Claims
			if err := token.Claims(plan.Secret, &claims); err != nil {
				return err
			}
			return claims.Validate(josejwt.Expected{})
		})
	},
	"jwt-jwx": func() mw {
		return verifying(func(text string) error {
			_, err := jwx.Parse([]byte(text), jwx.WithKey(jwa.HS256(), plan.Secret))
			return err
		})
	},
}

// must panics where settings that are as documented are refused.
func must(m mw, err error) mw {
	if err != nil {
		panic(err)
	}
	return m
}

// httplogging is httplog as its package shows it.
func httplogging(to io.Writer) mw {
	logger := slog.New(slog.NewJSONHandler(to, nil))
	return httplog.RequestLogger(logger, &httplog.Options{Schema: httplog.SchemaECS})
}

// zerologging is hlog's chain as its package shows it.
func zerologging() mw {
	logger := zerolog.New(plan.Log()).With().Timestamp().Logger()
	access := hlog.AccessHandler(func(r *http.Request, status, size int, took time.Duration) {
		hlog.FromRequest(r).Info().Str("method", r.Method).Stringer("url", r.URL).Int("status", status).Int("size", size).Dur("duration", took).Msg("")
	})
	return func(next http.Handler) http.Handler {
		return hlog.NewHandler(logger)(access(hlog.RemoteAddrHandler("ip")(hlog.UserAgentHandler("user_agent")(next))))
	}
}

// counting is what promhttp's documentation shows: a histogram of times and a counter.
func counting(o prometheus.HistogramOpts) mw {
	o.Name, o.Help = "http_request_duration_seconds", "Time to answer."
	labels := []string{"code", "method"}
	times := prometheus.NewHistogramVec(o, labels)
	requests := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "http_requests_total", Help: "Requests."}, labels)
	prometheus.NewRegistry().MustRegister(times, requests)
	return func(next http.Handler) http.Handler {
		return promhttp.InstrumentHandlerDuration(times, promhttp.InstrumentHandlerCounter(requests, next))
	}
}

// identifying is what services write around google/uuid.
func identifying(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get("X-Request-Id")
		if id == "" {
			id = uuid.NewString()
		}
		w.Header().Set("X-Request-Id", id)
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), requestKey{}, id)))
	})
}

type requestKey struct{}

// addressing is what realclientip-go's documentation shows, for known proxies.
func addressing() mw {
	proxies, err := realclientip.AddressesAndRangesToIPNets(plan.Proxies()...)
	if err != nil {
		panic(err)
	}
	strategy := realclientip.Must(realclientip.NewRightmostTrustedRangeStrategy("X-Forwarded-For", proxies))
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			address := strategy.ClientIP(r.Header, r.RemoteAddr)
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), addressKey{}, address)))
		})
	}
}

type addressKey struct{}

// zapping is what services write around zap: the fields of hlog's line, on a writer of chi's
// that knows the status.
func zapping() mw {
	encoder := zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig())
	logger := zap.New(zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(plan.Log())), zap.InfoLevel))
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			begun, ww := time.Now(), middleware.NewWrapResponseWriter(w, r.ProtoMajor)
			next.ServeHTTP(ww, r)
			logger.Info("", zap.String("ip", r.RemoteAddr), zap.String("user_agent", r.UserAgent()), zap.String("method", r.Method),
				zap.Stringer("url", r.URL), zap.Int("status", ww.Status()), zap.Int("size", ww.BytesWritten()), zap.Duration("duration", time.Since(begun)))
		})
	}
}

// measuring is what the documentation of VictoriaMetrics/metrics shows: names with labels in
// them, looked up for each request.
func measuring() mw {
	all := metrics.NewSet()
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			begun, ww := time.Now(), middleware.NewWrapResponseWriter(w, r.ProtoMajor)
			next.ServeHTTP(ww, r)
			labels := fmt.Sprintf("{method=%q,code=\"%d\"}", r.Method, ww.Status())
			all.GetOrCreateCounter("http_requests_total" + labels).Inc()
			all.GetOrCreateHistogram("http_request_duration_seconds" + labels).UpdateDuration(begun)
		})
	}
}

// breaking is what services write around a breaker, which executes what it lets pass: answers
// of 500 and more are failures.
func breaking(execute func(func() (struct{}, error)) (struct{}, error)) mw {
	failed := errors.New("the handler failed")
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, err := execute(func() (struct{}, error) {
				ww := middleware.NewWrapResponseWriter(w, r.ProtoMajor)
				next.ServeHTTP(ww, r)
				if ww.Status() >= http.StatusInternalServerError {
					return struct{}{}, failed
				}
				return struct{}{}, nil
			})
			if err != nil && !errors.Is(err, failed) {
				http.Error(w, err.Error(), http.StatusServiceUnavailable)
			}
		})
	}
}

// limitingByXTime is what services write around x/time/rate: a limiter for each client, in a map
// that never forgets one.
func limitingByXTime() mw {
	var mu sync.Mutex
	clients := map[string]*rate.Limiter{}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			host, _, err := net.SplitHostPort(r.RemoteAddr)
			if err != nil {
				host = r.RemoteAddr
			}
			mu.Lock()
			l := clients[host]
			if l == nil {
				l = rate.NewLimiter(plan.Rate, plan.Rate)
				clients[host] = l
			}
			mu.Unlock()
			if !l.Allow() {
				http.Error(w, http.StatusText(http.StatusTooManyRequests), http.StatusTooManyRequests)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

type tokenKey struct{}

// verifying is what services write around a library that has no middleware of its own.
func verifying(verify func(text string) error) mw {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			text, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
			err := errors.New("no token")
			if ok {
				err = verify(text)
			}
			if err != nil {
				http.Error(w, err.Error(), http.StatusUnauthorized)
				return
			}
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), tokenKey{}, text)))
		})
	}
}

func filteringByBart() mw {
	denied := new(bart.Lite)
	for _, p := range plan.Denied() {
		denied.Insert(p)
	}
	return filtering(denied.Contains)
}

func filteringByCidranger() mw {
	denied := cidranger.NewPCTrieRanger()
	for _, p := range plan.Denied() {
		of := net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
		if err := denied.Insert(cidranger.NewBasicRangerEntry(of)); err != nil {
			panic(err)
		}
	}
	return filtering(func(a netip.Addr) bool {
		found, err := denied.Contains(a.AsSlice())
		return found || err != nil
	})
}

func filteringByNetipx() mw {
	var b netipx.IPSetBuilder
	for _, p := range plan.Denied() {
		b.AddPrefix(p)
	}
	denied, err := b.IPSet()
	if err != nil {
		panic(err)
	}
	return filtering(denied.Contains)
}

// filtering is what services write around a table that has no middleware of its own.
func filtering(denied func(netip.Addr) bool) mw {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			from, err := netip.ParseAddrPort(r.RemoteAddr)
			if err != nil || denied(from.Addr().Unmap()) {
				http.Error(w, http.StatusText(http.StatusForbidden), http.StatusForbidden)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// tracingByTare traces a share of the requests.
func tracingByTare(share float64) mw {
	layer := must(tracing.New(tracing.Options{Provider: spans.Provider(sdktrace.AlwaysSample()), Sampler: tracing.Fixed{Share: share}}))
	return func(next http.Handler) http.Handler { return chain.Must(chain.New(layer).Then(next)) }
}

func tracingByOtelhttp(s sdktrace.Sampler) mw {
	return otelhttp.NewMiddleware("orders", otelhttp.WithTracerProvider(spans.Provider(s)), otelhttp.WithMeterProvider(metricnoop.NewMeterProvider()),
		otelhttp.WithPropagators(propagation.TraceContext{}))
}

func tracingByOtelchi(s sdktrace.Sampler) mw {
	return routing(func(r chi.Router) {
		r.Use(otelchi.Middleware("orders", otelchi.WithChiRoutes(r), otelchi.WithTracerProvider(spans.Provider(s)), otelchi.WithPropagators(propagation.TraceContext{})))
	})
}

// routing has a router of chi lead to next, for layers that read its route.
func routing(use func(chi.Router)) mw {
	return func(next http.Handler) http.Handler {
		r := chi.NewRouter()
		use(r)
		r.Method(http.MethodGet, "/orders/{id}", next)
		return r
	}
}
