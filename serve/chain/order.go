package chain

import (
	"errors"
	"fmt"
	"slices"
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
	meant := func(o *placed) bool { return o.is(r.other) }
	named := func(o *placed) bool { return o.Name == l.Name }
	lacks := func(o *placed) bool { return !o.has(r.kind) }
	switch r.kind {
	case after:
		if o := pick(inside, meant); o != nil {
			return broken(o, "must not stand before")
		}
	case before:
		if o := pick(outside, meant); o != nil {
			return broken(o, "must not stand after")
		}
	case needs:
		if pick(outside, meant) == nil {
			return &OrderError{l.Name, r.other, r.why, fmt.Sprintf("%v needs %s before it", l, r.other)}
		}
	case first:
		if o := pick(outside, lacks); o != nil {
			return broken(o, "must stand first, not after")
		}
	case last:
		if o := pick(inside, lacks); o != nil {
			return broken(o, "must stand last, not before")
		}
	case once:
		o := pick(outside, named) // of two that say so the second one complains
		if in := pick(inside, named); in != nil && !in.has(once) {
			o = in
		}
		if o != nil {
			return broken(o, "must not stand beside")
		}
	}
	return nil
}

// pick returns the first of the layers that is so, nil if none is.
func pick(layers []placed, is func(*placed) bool) *placed {
	if i := slices.IndexFunc(layers, func(p placed) bool { return is(&p) }); i >= 0 {
		return &layers[i]
	}
	return nil
}
