// Package chain composes middleware around a handler.
//
// A middleware is what it is everywhere in Go: a func(http.Handler)
// http.Handler. A [Chain] is a list of them, outermost first; [Chain.Then] puts
// them around a handler. What nested middleware costs is not the calls but what
// each layer makes for itself: a copy of the request to carry a value, a writer
// around the writer to see the status. In a chain all layers share one [State],
// made once a request:
//
//   - Values by typed key: [NewKey], [Key.Set], [Key.Value]. Whoever holds the
//     request, or a context derived from its own, finds them, by the key or by
//     context.Context's own Value. No layer copies the request.
//   - One [Recorder] of the answer: status, bytes, whether the header is gone,
//     whether the connection was hijacked. Layers get it from [Record].
//
// # Where the state lives
//
// The chain asks the request's context for a place to keep its state, by the
// method
//
//	ChainSlot() *Slot
//
// which the engine of package serve has. The [Slot] starts out empty, or holds a
// State that is new or has been Reset. A context with that method answers Value
// by the Value method of what is there first. The engine's response writer has
// the method, too, and returns the same: the place is for the answer that goes
// there, not for parts of it that are gathered elsewhere.
// Under any other server the chain makes one copy of the request, whose context
// carries the state: one allocation for both, at any depth. A chain without layers
// makes none, nor does one in a program that has made no [Key].
//
// A handler may keep its request after it returned: the state belongs to that
// request alone and is never handed to another, unless an engine was told to
// reuse requests, for handlers that do not keep them.
//
// # Order and conditions
//
// A layer may say what it must not stand before, and why; Then reports every
// broken rule at once, see [Layer] and [Rule]. Layers may stand for some requests
// only, see [Condition]: what the environment or a known route decides
// ([Chain.For]) is decided when the chain is built. [Describe] prints the
// result.
//
// # When not to use it
//
// For one or two middlewares that share nothing, a(b(h)) is a chain.
package chain
