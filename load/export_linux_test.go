package load

// LendProcessors lets tests borrow as runs do.
var LendProcessors = lendProcessors
