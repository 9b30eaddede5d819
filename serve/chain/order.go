package chain

import (
	"errors"
	"fmt"
)

// OrderError is a rule that a chain breaks. [Chain.Then] joins all there are.
type OrderError struct {
	// Layer is the name of the layer whose rule it is.
	Layer string
	// Other is the layer that it should not stand so with; of Needs where that
	// is missing, what the rule calls it.
	Other string
	// Why is the rule's reason.
	Why string

	says string
}

func (e *OrderError) Error() string { return fmt.Sprintf("%s: %s", e.says, e.Why) }

// check returns what the layers, outermost first, break of their rules.
func check(layers []placed) error {
	var errs []error
	for i := range layers {
		for _, rule := range layers[i].Rules {
			if err := rule.check(layers, i); err != nil {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

// check returns what is wrong with the i-th layer's place, or nil.
func (r Rule) check(layers []placed, i int) error {
	l := &layers[i]
	broken := func(other *placed, form string) error {
		says := fmt.Sprintf("%v %s %v", l, form, other)
		return &OrderError{l.Name, other.Name, r.why, says}
	}
	outside, inside := layers[:i], layers[i+1:]
	switch r.kind {
	case after:
		if o := meant(inside, r.other); o != nil {
			return broken(o, "must not stand before")
		}
	case before:
		if o := meant(outside, r.other); o != nil {
			return broken(o, "must not stand after")
		}
	case needs:
		if meant(outside, r.other) == nil {
			return &OrderError{l.Name, r.other, r.why, fmt.Sprintf("%v needs %s before it", l, r.other)}
		}
	case first:
		if o := without(outside, first); o != nil {
			return broken(o, "must stand first, not after")
		}
	case last:
		if o := without(inside, last); o != nil {
			return broken(o, "must stand last, not before")
		}
	case once:
		o := named(outside, l.Name) // of two that say so the second one complains
		if in := named(inside, l.Name); in != nil && !in.has(once) {
			o = in
		}
		if o != nil {
			return broken(o, "must not stand beside")
		}
	}
	return nil
}

func meant(layers []placed, name string) *placed {
	for i := range layers {
		if layers[i].is(name) {
			return &layers[i]
		}
	}
	return nil
}

func named(layers []placed, name string) *placed {
	for i := range layers {
		if layers[i].Name == name {
			return &layers[i]
		}
	}
	return nil
}

// without returns the first layer that has no rule of that kind.
func without(layers []placed, k ruleKind) *placed {
	for i := range layers {
		if !layers[i].has(k) {
			return &layers[i]
		}
	}
	return nil
}
