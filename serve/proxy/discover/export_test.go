package discover

// LeastTTL is leastTTL, for tests.
var LeastTTL = leastTTL
