// Package nettrace stands in for internal/nettrace.
package nettrace

import "net/http/httptrace"

// LookupIPAltResolverKey is the context key of another resolver.
type LookupIPAltResolverKey = httptrace.SuiteLookupIPKey
