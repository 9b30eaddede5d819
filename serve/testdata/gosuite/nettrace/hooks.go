package httptrace

import "internal/nettrace"

// SuiteLookupIPKey is the key that the tests of net/http know from
// internal/nettrace, which no module may import.
type SuiteLookupIPKey = nettrace.LookupIPAltResolverKey
