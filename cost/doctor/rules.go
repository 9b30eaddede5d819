package doctor

import "slices"

// Rules returns every rule, in the order in which the documentation has them.
func Rules() []Rule {
	return slices.Concat(hotPathRules(), []Rule{ownersRule(), poolRule(), buffersRule(), goroutinesRule(), gcRule(), loggingRule()}, waitRules(),
		[]Rule{clientRule(), timeoutsRule()}, boundRules(), quotaRules(), []Rule{defersRule(), escapesRule()})
}

const (
	verifyCost = "tare cost under the same load, before and after: the owner's self CPU falls by the price"
	verifyWait = "tare cost --waits under the same load, before and after: the owner's waiting falls by the price"
)
