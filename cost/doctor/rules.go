package doctor

// Rules returns every rule, in the order in which the documentation has them.
func Rules() []Rule {
	rules := hotPathRules()
	return append(rules,
		poolRule(), buffersRule(), goroutinesRule(), gcRule(), mutexRule(), loggingRule(), sleepRule(),
		clientRule(), timeoutsRule(), procsRule(), defersRule(), escapesRule(),
	)
}

const (
	verifyCost = "tare cost under the same load, before and after: the owner's self CPU falls by the price"
	verifyWait = "tare cost --waits under the same load, before and after: the owner's waiting falls by the price"
)
